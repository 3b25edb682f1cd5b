# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the hosts of a report belong, by their variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .report import PLACE
from .shapes import text
from .signed import value_of


def places(hosts: Iterable[str], variables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str | None]]:
    """The `pool`, `site` and `class` of each host; None for what it has no variable for, or one that is no text."""
    return {host: {part: _text(value_of(variables[host], f"bcd_{part}")) for part in PLACE} for host in hosts}


def _text(value: Any) -> str | None:
    return text(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else None
