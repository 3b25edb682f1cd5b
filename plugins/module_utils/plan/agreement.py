# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signed spec is what is applied; options given beside it may only say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import Refused
from . import canonical

ADVICE = "leave the options out, or have the spec signed with them"
LONGEST = 120  # characters of a value, in a message
Units = Mapping[str, Mapping[str, Any]]


def of_unit(signed: Units | None, unit: str, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The wire settings that one unit takes; None: it is cleaned, which is for a unit that the spec does not name.

    `given` are the options' settings ({}: none were given), None for `state: absent`. Raises Refused.
    """
    units = managed(signed)
    if given is None:
        if unit in units:
            raise Refused(
                f"{unit} is to be removed, and the signed spec names it: leave state out, or sign it without {unit}"
            )
        return None
    if unit not in units:
        raise Refused(f"the signed spec does not name {unit}: have a spec signed that does, or give state: absent")
    if given and _text(given) != _text(units[unit]):
        raise Refused(f"{unit}: {differences(given, units[unit])}: {ADVICE}")
    return units[unit]


def of_section(signed: Units | None, given: Mapping[str, Any] | None) -> Units:
    """The units of the whole host; `given` is the section in the options, None where it is left out. Raises Refused."""
    units = managed(signed)
    if given is None:
        return units
    more, fewer = sorted(set(given) - set(units)), sorted(set(units) - set(given))
    if more or fewer:
        which = f"do not name {', '.join(fewer)}" if fewer else f"name {', '.join(map(str, more))} too"
        raise Refused(f"the signed spec has {', '.join(sorted(units)) or 'no unit'}, and the options {which}: {ADVICE}")
    for unit, settings in given.items():
        if isinstance(settings, Refused):
            raise settings
        if _text(settings) != _text(units[unit]):
            raise Refused(f"{unit}: {differences(settings, units[unit])}: {ADVICE}")
    return units


def of_devices(
    signed: Sequence[Mapping[str, Any]] | None, given: Sequence[Mapping[str, Any]] | None
) -> list[Mapping[str, Any]]:
    """The assignments; `given` are those in the options, None where they are left out. Raises Refused."""
    if signed is None:
        raise Refused("the signed spec has no devices, and manages no hold: have a spec signed that has them")
    if given is not None and _text(said(list(given))) != _text(said(list(signed))):
        raise Refused(f"assignments differ from the devices of the signed spec: {ADVICE}")
    return list(signed)


def of_generation(signed: int, given: int | None) -> int:
    """The spec's generation, which one in the options has to be. Raises Refused."""
    if given is not None and given != signed:
        raise Refused(f"generation is {given} in the options and {signed} in the signed spec: {ADVICE}")
    return signed


def of_node(signed: str, given: str | None) -> str:
    """The spec's node, which one in the options has to be: labels and reports bear its name. Raises Refused."""
    if given not in (None, "", signed):
        raise Refused(f"node_id is {_shown(given)}, and the signed spec is for {signed}: leave it out")
    return signed


def managed(signed: Units | None) -> Units:
    """The units of a spec that manages the host; raises Refused for one that does not."""
    if signed is None:
        raise Refused("the signed spec has no host section, and manages no unit: have a spec signed that has one")
    return signed


def differences(given: Mapping[str, Any], signed: Mapping[str, Any]) -> str:
    """What the options say otherwise, as the beginning of a sentence: the first setting that differs."""
    for name in sorted({*map(str, given), *signed}):
        if name not in given:
            return f"{_cut(name)} is not in the options and {_shown(signed[name])} in the signed spec"
        if name not in signed:
            return f"{_cut(name)} is {_shown(given[name])} in the options and not in the signed spec"
        if _text(given[name]) != _text(signed[name]):
            here, there = _shown(given[name]), _shown(signed[name])
            return f"{_cut(name)} is {here} in the options and {there} in the signed spec"
    return "the options are not what the signed spec has"


def _shown(value: Any) -> str:
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def said(value: Any) -> Any:
    """Options without the suboptions that were not given, which Ansible has as null."""
    if isinstance(value, Mapping):
        return {key: said(item) for key, item in value.items() if item is not None}
    return [said(item) for item in value] if isinstance(value, (list, tuple)) else value


def _text(value: Any) -> str:
    """By which two values are told apart, type and all: 1, true and "1" are three."""
    try:
        return canonical.canonical(value)
    except ValueError as fault:
        raise Refused(f"{_cut(str(fault))}, and nothing signed can be that: correct the options") from None
