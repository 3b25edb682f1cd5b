# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a quiet turn of a unit has asked of a host, and which of that is answered in another way later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Watched

Asked = dict[Any, str]  # questions, each with the digest of its answer


def asked_in(host: Host, turn: Callable[[Watched], object]) -> Asked:
    """Every question of a turn that can be known again."""
    watched = Watched(host)
    watched.begin()
    turn(watched)
    asked = watched.end()
    assert asked, "the turn cannot be known again"
    return asked


def differing(host: Host, asked: Asked) -> list[Any]:
    """The questions that are answered in another way now."""
    watched = Watched(host)
    return [question for question, digest in asked.items() if watched.digest_of(question) != digest]
