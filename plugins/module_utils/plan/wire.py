# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section as it travels: a list of units, each with its settings as JSON text, and read strictly.

A mapping cannot show what was wrong with the text that it came from; this can.
"""

from __future__ import annotations

from ..core.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn, Union

    Settings = Union[dict[str, Any], Refused]  # Refused: what is wrong with them


def from_mapping(units: Mapping[str, Any]) -> dict[str, Settings]:
    """A section given as a mapping from unit to settings; settings that are none are that unit's refusal."""
    return {unit: _mapping(unit, settings) for unit, settings in units.items()}


def from_list(units: Sequence[Mapping[str, Any]]) -> dict[str, Settings]:
    """A section in wire form, `{unit, settings: text}` each. Text that does not decode is that unit's refusal.

    A unit named twice is refused for the whole section, since nothing says which settings apply.
    """
    names = [str(entry["unit"]) for entry in units]
    twice = _twice(names)
    if twice:
        raise Refused(
            f"the section names {', '.join(twice)} twice: nothing says which settings apply: name each unit once"
        )
    return {name: decode(name, entry["settings"]) for name, entry in zip(names, units)}


def decode(unit: str, text: Any) -> Settings:
    """One unit's settings from their text: one JSON object, no key twice, no NaN, nothing after it."""
    if not isinstance(text, str):
        return Refused(f"{unit}: its settings came as {type(text).__name__}, not as text: give them unparsed")
    import json

    try:
        settings = json.loads(text, object_pairs_hook=once, parse_constant=_no_number)
        json.dumps(settings, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as fault:  # UnicodeEncodeError, for half a character, is a ValueError
        return Refused(f"{unit}: its settings are not one JSON object, read strictly ({fault}): correct them")
    return _mapping(unit, settings)


def _mapping(unit: str, settings: Any) -> Settings:
    if isinstance(settings, dict):
        return settings
    shown = "null" if settings is None else repr(settings)
    return Refused(f"{unit}: its settings are {shown}: give a mapping, {{}} for none")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object in which no key is there twice, for `json.loads`; raises ValueError."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"{', '.join(_twice([name for name, _value in pairs]))} is there twice")
    return found


def _twice(names: Sequence[str]) -> list[str]:
    """The names that are there more than once, in time that grows with the text and no faster: it may be anyone's."""
    from collections import Counter

    return sorted(name for name, times in Counter(names).items() if times > 1)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")
