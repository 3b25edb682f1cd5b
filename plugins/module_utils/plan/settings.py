# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings in wire form, held to a unit's table of fields."""

# The very type of a value decides here.
# pylint: disable=unidiomatic-typecheck

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused
from ..core.plan import Field


def strict(unit: str, fields: tuple[Field, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, each of exactly a type of its field (true is no integer); raises Refused naming all faults.

    Mappings inside, such as `gpus[1].select`, are held to the tables of their fields.
    """
    if not _fits(fields, given):
        from .settings_faults import faults

        found = faults(fields, given, "", "setting of this unit")
        raise Refused(f"{unit}: {'; '.join(found)}: correct the settings")
    return dict(given)


def _fits(fields: tuple[Field, ...], given: Mapping[str, Any]) -> bool:
    table = {field.wire: field for field in fields}
    for name, value in given.items():
        if name not in table or type(value) not in table[name].types:
            return False
        if table[name].fields:
            items = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
            if not all(type(item) is dict and _fits(table[name].fields, item) for item in items):
                return False
    return True
