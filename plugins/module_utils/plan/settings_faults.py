# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with settings in wire form, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.plan import Field

WORDS = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    float: "a number",
}


def faults(fields: tuple[Field, ...], given: Mapping[str, Any], at: str, what: str) -> Iterator[str]:
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
                yield from faults(table[name].fields, item, f"{place}.", f"key of {name}")


def _wrong_type(place: str, value: Any, types: tuple[type, ...]) -> Iterator[str]:
    if type(value) not in types:
        wanted = " or ".join(WORDS[kind] for kind in types)
        shown = "null" if value is None else f"{WORDS.get(type(value), 'a value')} ({value!r})"
        # YAML reads digits without quotes as a number.
        quoted = {int: f', in quotes: "{value}"', float: ", in quotes (without, 1.30 is 1.3)"}.get(type(value), "")
        yield f"{place} is {shown}, and takes {wanted}{quoted if types == (str,) else ''}"
