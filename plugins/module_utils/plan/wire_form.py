# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module's options as settings in wire form: what a pass over the whole host, which is given them, never needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.plan import Field, Unit


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
