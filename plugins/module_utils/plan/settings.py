# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings in wire form, held to a unit's table of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused
from ..core.plan import Field, Unit

WORDS = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    float: "a number",
}


def strict(unit: str, fields: tuple[Field, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, each of exactly a type of its field (true is no integer); raises Refused naming all faults."""
    table = {field.wire: field for field in fields}
    faults = []
    for name, value in given.items():
        if name not in table:
            faults.append(f"{name!r} is no setting of this unit (it takes {', '.join(sorted(table)) or 'none'})")
        elif type(value) not in table[name].types:
            wanted = " or ".join(WORDS[kind] for kind in table[name].types)
            faults.append(f"{name} is {WORDS.get(type(value), 'null')} ({value!r}), and takes {wanted}")
    if faults:
        raise Refused(f"{unit}: {'; '.join(faults)}: correct the settings")
    return dict(given)


def wire_settings(unit: Unit, params: Mapping[str, Any]) -> dict[str, Any]:
    """The module's options as settings in wire form; an option that was not given is not managed."""
    if [field.wire for field in unit.fields] == [""]:
        return dict(params.get(unit.fields[0].option) or {})
    given = {field.wire: params[field.option] for field in unit.fields if params.get(field.option) is not None}
    scalars = {field.wire for field in unit.fields if {int, list} <= set(field.types)}
    return {wire: value[0] if wire in scalars and len(value) == 1 else value for wire, value in given.items()}
