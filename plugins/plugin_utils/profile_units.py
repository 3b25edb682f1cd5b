# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A profile's hostConfig: the units that it names, each with the label expression that says for which hosts it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..module_utils.plan.unit_names import MIG_LAYOUT, ORDER
from .input_faults import Fault, below, shown
from .label_expression import Expression, parse
from .unit_faults import unit_faults

WHEN = "when"
FROM, POOL = "from", "pool"
ANY_LAYOUT = "off"


class Named(NamedTuple):
    """A unit of a profile: its settings as they are to be rendered, and for which hosts it is (None: for all)."""

    settings: dict[str, Any]
    when: Expression | None = None

    @property
    def takes_pools_layout(self) -> bool:
        """Whether the pool's layout goes in."""
        return FROM in self.settings


def profile_units(config: Mapping[str, Any], path: str) -> tuple[list[Fault], dict[str, Named]]:
    """The faults of a hostConfig in plain values that lies at the path, and its units that have none.

    What the host would refuse of a unit is a fault, whether or not it is for any host.
    """
    faults: list[Fault] = []
    units: dict[str, Named] = {}
    for name, given in config.items():
        place = below(path, name)
        if name not in ORDER:
            faults.append(Fault(place, f"there is no unit of this name: correct it to one of {', '.join(ORDER)}"))
        elif not isinstance(given, dict):
            faults.append(Fault(place, f"this is {shown(given)}: give the unit's settings, {{}} for none"))
        else:
            settings = {key: value for key, value in given.items() if key != WHEN}
            wrong, when = _when(given, place)
            wrong += _setting_faults(name, settings, place)
            faults += wrong
            if not wrong:
                units[name] = Named(settings, when)
    return faults, units


def _when(given: Mapping[str, Any], path: str) -> tuple[list[Fault], Expression | None]:
    if WHEN not in given:
        return [], None
    place, text = below(path, WHEN), given[WHEN]
    if not isinstance(text, str):
        return [
            Fault(place, f"this is {shown(text)}: give a label expression as text, such as \"gpu and rack == 'r1'\"")
        ], None
    try:
        return [], parse(text)
    except ValueError as fault:
        return [Fault(place, str(fault))], None


def _setting_faults(name: str, settings: dict[str, Any], path: str) -> list[Fault]:
    """What the host refuses; `from: pool` of mig-layout, which it never gets to see, stands for any layout."""
    if name != MIG_LAYOUT or FROM not in settings:
        return unit_faults(name, settings, path)
    faults = []
    if settings[FROM] != POOL:
        faults.append(
            Fault(below(path, FROM), f"this is {shown(settings[FROM])}: a layout comes from: {POOL}, or as layout")
        )
    if "layout" in settings:
        faults.append(
            Fault(path, f"layout stands beside from: {POOL}, which puts the pool's in its place: keep one of them")
        )
    rest = {key: value for key, value in settings.items() if key != FROM}
    return [*faults, *unit_faults(name, {"layout": ANY_LAYOUT, **rest}, path)]
