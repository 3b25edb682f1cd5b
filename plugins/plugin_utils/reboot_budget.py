# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many hosts of a pool may be unavailable at a time: a number, or a percentage of the whole pool."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

FORM = re.compile(r"([1-9][0-9]{0,5})(%?)")


class Limit(NamedTuple):
    """So many hosts, or so many percent of a pool."""

    number: int
    percent: bool = False


def limit(value: Any) -> Limit:
    """The limit in a number or a text ("3", "10%"); raises ValueError for what is none, 0 and more than 100% too."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    text = value if isinstance(value, str) else str(value) if is_number else ""
    found = FORM.fullmatch(text)
    if found is None or (found.group(2) and int(found.group(1)) > 100):
        raise ValueError(
            f"bcd_reboot_max_unavailable is {value!r}, and says how many hosts of a pool may be unavailable at a time: "
            "give a number from 1 on, or a percentage of the pool from 1% to 100%, as 3 or 10%"
        )
    return Limit(int(found.group(1)), bool(found.group(2)))


def allowed(most: Limit, size: int) -> int:
    """How many hosts of a pool of that size: a percentage is rounded down, and is at least one host."""
    return max(1, size * most.number // 100) if most.percent else most.number
