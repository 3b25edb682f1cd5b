# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels of a host: its pool's, over these its own, and over all the pool, the site and the class that it is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .input_faults import Fault, below, shown
from .label_expression import KEY, text_of

FIXED = {"pool": "name", "site": "site", "class": "class"}  # by label: the key of the pool
LONGEST = 1024  # characters of a label's value


def labels_of(pool: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The labels of a host of the pool that has these of its own. What is wrong with them, label_faults says."""
    fixed = {label: pool[key] for label, key in FIXED.items() if key in pool}
    return {**(pool.get("labels") or {}), **(own or {}), **fixed}


def label_faults(given: Any, path: str, pool: Mapping[str, Any]) -> list[Fault]:
    """What is wrong with labels in plain values, of a pool or of a host of it, that lie at the path."""
    if not isinstance(given, dict):
        return [Fault(path, f"this is {shown(given)}: give a mapping of labels")]
    faults = []
    for key, value in given.items():
        place = below(path, key)
        if not KEY.fullmatch(key):
            faults.append(
                Fault(place, "a label's key has letters, digits, dots, /, - and _, and begins with a letter or a digit")
            )
        elif isinstance(value, (dict, list)) or value is None or len(text_of(value)) > LONGEST:
            faults.append(
                Fault(
                    place,
                    f"this is {shown(value)}: give a text of at most {LONGEST} characters, a number, true or false",
                )
            )
        elif key in FIXED and FIXED[key] in pool and value != pool[FIXED[key]]:
            faults.append(
                Fault(place, f"this is {shown(value)}, and the pool says {shown(pool[FIXED[key]])}: take the label out")
            )
    return faults
