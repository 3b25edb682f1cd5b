# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be asked of a host: nothing of it goes by the watched one, and each question has its name."""

from __future__ import annotations

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.question import DIRECT, FOLLOWING
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Watched

CHANGES = {"apply", "write", "remove", "set", "act", "sleep"}
NO_QUESTION = {"uid", "clock", "time"}  # the same for as long as we run; never the same


def public(kind: type) -> set[str]:
    return {name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")}


def test_what_a_host_can_be_asked_or_told_the_watched_one_hears() -> None:
    """What it does not hear is asked of the machine itself, and is missing from what a turn has asked."""
    assert public(Host) - public(Watched) == set()


def test_each_question_is_known_as_one() -> None:
    assert public(Host) - CHANGES - NO_QUESTION == {*DIRECT, *FOLLOWING, "sight"}
