# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which units' quiet turns a host knows again, so that a bench can tell whether it measures what it says.

A host keeps what quiet turns asked, by the code that made them (front.recall). The turns of a converged pass that are
not known again are made, and kept anew: that is seen in the file, and means another cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.recall import FOLDER

Kept = Mapping[str, Mapping[str, Any]]  # by the name of the code, by unit: what is kept of its quiet turn


def kept(tree: str) -> Kept:
    """What the host of a tree has kept so far."""
    found = {}
    for path in Path(tree + FOLDER).glob("*.json"):
        found[path.stem] = json.loads(path.read_text(encoding="utf-8"))["units"]
    return found


def made_anew(before: Kept, after: Kept) -> set[str]:
    """The units whose turns were made, and kept, between the two."""
    found = set()
    for code, units in after.items():
        was = before.get(code, {})
        found |= {unit for unit, turn in units.items() if was.get(unit) != turn}
    return found


def never(found: Kept, units: Iterable[str]) -> dict[str, list[str]]:
    """By code: those of the units that each pass makes in full, since nothing of them is kept."""
    return {code: [unit for unit in units if unit not in turns] for code, turns in found.items()}
