# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The areas of swap that are on, as the kernel lists them."""

from __future__ import annotations

import re
from typing import NamedTuple

from .fstab_swap import plain

SWAPS_HEADER = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


class Area(NamedTuple):
    """A line of /proc/swaps: sizes are in KiB; the kernel's own priorities are below 0."""

    path: str
    kind: str = "partition"  # or "file"
    size: int = 0
    used: int = 0
    priority: int = -2


def parse_swaps(text: str) -> tuple[Area, ...]:
    """/proc/swaps: a line of titles, then path, type, size, used, priority; blanks in a path are octal."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) == 5 and all(re.fullmatch(r"-?\d+", field) for field in fields[2:]):
            found.append(Area(plain(fields[0]), fields[1], *(int(field) for field in fields[2:])))
        elif fields:  # whatever it is, the kubelet counts it
            found.append(Area(plain(fields[0])))
    return tuple(found)
