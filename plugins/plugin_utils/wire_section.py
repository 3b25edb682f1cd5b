# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host section as the wire has it, a list of units with their settings as canonical JSON, written and read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..module_utils.plan import wire
from ..module_utils.plan.canonical import canonical
from ..module_utils.plan.section import unnamed
from .input_faults import Fault, InvalidInput, below, plain, shown

ENTRY = ("unit", "settings")


def to_section(units: Any) -> list[dict[str, str]]:
    """The wire form of a mapping from unit to settings, sorted by name: equal sections are equal bytes.

    Raises InvalidInput for what has no canonical form. What a host would refuse is not judged here.
    """
    faults: list[Fault] = []
    if not isinstance(units, Mapping):
        raise InvalidInput([Fault("$", f"this is {shown(units)}: give a mapping from units to their settings")])
    given = plain(units, "$", faults)
    found = []
    for name in sorted(given):
        place = below("$", name)
        if not isinstance(given[name], dict):
            faults.append(Fault(place, f"this is {shown(given[name])}: give the unit's settings, {{}} for none"))
            continue
        try:
            found.append({"unit": name, "settings": canonical(given[name])})
        except ValueError as fault:
            faults.append(Fault(place, f"{fault}: give whole numbers, and other values as text"))
    if faults:
        raise InvalidInput(faults)
    return found


def from_section(section: Any) -> dict[str, dict[str, Any]]:
    """The mapping of a section in wire form, sorted by name; raises InvalidInput for what a host would not decode."""
    if not isinstance(section, list):
        raise InvalidInput([Fault("$", f"this is {shown(section)}: give a list of units with their settings")])
    faults: list[Fault] = []
    entries = plain(section, "$", faults)
    names = Counter(entry["unit"] for entry in entries if _has_name(entry))
    found: dict[str, dict[str, Any]] = {}
    for at, entry in enumerate(entries):
        place = below("$", at)
        wrong = _entry_faults(entry, place)
        if not wrong and names[entry["unit"]] > 1:
            text = f"{entry['unit']} is named twice, and nothing says which settings apply: name each unit once"
            wrong = [Fault(below(place, "unit"), text)]
        if not wrong:
            settings = wire.decode(entry["unit"], entry["settings"])
            if isinstance(settings, dict):
                found[entry["unit"]] = settings
            else:
                wrong = [Fault(below(place, "settings"), unnamed(entry["unit"], settings.message))]
        faults += wrong
    if faults:
        raise InvalidInput(faults)
    return {name: found[name] for name in sorted(found)}


def _has_name(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("unit"), str)


def _entry_faults(entry: Any, path: str) -> list[Fault]:
    if not isinstance(entry, dict):
        return [Fault(path, f"this is {shown(entry)}: give a mapping of {' and '.join(ENTRY)}")]
    faults = [
        Fault(below(path, key), f"there is no such key here: it takes {' and '.join(ENTRY)}")
        for key in entry
        if key not in ENTRY
    ]
    for key in ENTRY:
        if key not in entry:
            faults.append(Fault(path, f"{key} is missing: give it"))
        elif not isinstance(entry[key], str):
            faults.append(Fault(below(path, key), f"this is {shown(entry[key])}: give it as text"))
    return faults
