# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `nvidia-smi mig` lists of what a GPU offers: profiles and their placements."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..plan.mig import parse_profile
from ..plan.mig_offered import Offered, Placements
from .mig import table_rows
from .smi_faults import quoted

OFFERED = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)/(\d+)\s+[\d.]+\s+\S+(?:\s+\d+){3}\s*\|")
OFFERED_MORE = re.compile(r"\|(?:\s+\d+){3}\s*\|")  # its second line: copy engines, JPEG, OFA
PLACEMENTS = re.compile(r"GPU +(\d+) Profile ID +(\d+) Placements? *: \{(\d+(?:,\d+)*)\}:(\d+)")


def parse_lgip(text: str) -> tuple[tuple[int, Offered], ...]:
    """(GPU index, profile) of `mig -lgip`; raises StepFailed naming what it does not know."""
    rows = table_rows(text, "GPU instance profiles:", (OFFERED, OFFERED_MORE))
    found = []
    for gpu, name, number, free, total in rows:
        profile = parse_profile(name)
        if profile is None:
            raise StepFailed(f"nvidia-smi mig -lgip offers the profile {name!r}, whose name is of no known form")
        found.append((int(gpu), Offered(int(number), profile, name, int(free), int(total))))
    return tuple(found)


def parse_lgipp(text: str) -> tuple[tuple[int, Placements], ...]:
    """(GPU index, placements) of `mig -lgipp`; raises StepFailed naming what it does not know."""
    found = []
    for line in text.splitlines():
        row = PLACEMENTS.fullmatch(line.strip())
        if row:
            starts = tuple(int(start) for start in row.group(3).split(","))
            found.append((int(row.group(1)), Placements(int(row.group(2)), starts, int(row.group(4)))))
        elif line.strip():
            raise StepFailed(f"nvidia-smi mig -lgipp prints {quoted(line)}, which is no profile's placements")
    if not found:
        raise StepFailed("nvidia-smi mig -lgipp prints nothing, not even one profile's placements")
    return tuple(found)
