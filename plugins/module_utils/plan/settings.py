# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings in wire form, held to a unit's table of fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """The settings, each of exactly a type of its field (true is no integer); raises Refused naming all faults.

    Mappings inside, such as `gpus[1].select`, are held to the tables of their fields.
    """
    faults = list(_faults(fields, given, "", "setting of this unit"))
    if faults:
        raise Refused(f"{unit}: {'; '.join(faults)}: correct the settings")
    return dict(given)


def _faults(fields: tuple[Field, ...], given: Mapping[str, Any], at: str, what: str) -> Iterator[str]:
    """What is wrong with a mapping that lies `at` a place such as "gpus[1].", a sentence each."""
    table = {field.wire: field for field in fields}
    for name, value in given.items():
        if name not in table:
            yield f"{at + str(name)!r} is no {what} (it takes {', '.join(sorted(table)) or 'none'})"
            continue
        yield from _wrong_type(at + name, value, table[name].types)
        if not table[name].fields:
            continue
        items = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
        for number, item in enumerate(items):
            place = f"{at}{name}[{number}]" if isinstance(value, list) else at + name
            yield from _wrong_type(place, item, (dict,))
            if isinstance(item, dict):
                yield from _faults(table[name].fields, item, f"{place}.", f"key of {name}")


def _wrong_type(place: str, value: Any, types: tuple[type, ...]) -> Iterator[str]:
    if type(value) not in types:
        wanted = " or ".join(WORDS[kind] for kind in types)
        shown = "null" if value is None else f"{WORDS.get(type(value), 'a value')} ({value!r})"
        # YAML reads digits without quotes as a number.
        quoted = {int: f', in quotes: "{value}"', float: ", in quotes (without, 1.30 is 1.3)"}.get(type(value), "")
        yield f"{place} is {shown}, and takes {wanted}{quoted if types == (str,) else ''}"


def wire_settings(unit: Unit, params: Mapping[str, Any]) -> dict[str, Any]:
    """The module's options as settings in wire form; an option that was not given is not managed."""
    if [field.wire for field in unit.fields] == [""]:
        return dict(params.get(unit.fields[0].option) or {})
    return _wire(unit.fields, params)


def _wire(fields: tuple[Field, ...], params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        field.wire: _wire_value(field, params[field.option]) for field in fields if params.get(field.option) is not None
    }


def _wire_value(field: Field, value: Any) -> Any:
    if field.fields and isinstance(value, list):
        return [_wire_inside(field.fields, item) for item in value]
    if field.fields and isinstance(value, dict):
        return _wire_inside(field.fields, value)
    one = {int, list} <= set(field.types) and len(value) == 1  # an option of type list stands for a number too
    return value[0] if one else value


def _wire_inside(fields: tuple[Field, ...], given: Any) -> Any:
    """Suboptions; what is none of them stays, to be refused: they may be from a signed spec, or a file."""
    if not isinstance(given, Mapping):
        return given
    known = {field.option for field in fields}
    return {**{name: value for name, value in given.items() if name not in known}, **_wire(fields, given)}
