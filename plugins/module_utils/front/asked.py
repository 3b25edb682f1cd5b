# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What passes were asked, remembered by root, so that bcd agent can ask it again when no controller is there.

The record ``asked.json`` has `units` (wire settings by unit), `host` and `devices` (the options beside them) and
`limits` (the max_disruption of units whose own module was given a lower one than the highest). Settings come into it
once they were accepted and before the first step, so that a pass that dies leaves what it was to do; what is refused
never does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Callable

from ..core.errors import Fault, Refused
from ..core.plan import Past, Plan, Question, Unit
from ..core.records import Records
from .options import DEVICES, HIGHEST

# Of the options of cdi_holds those that say what the devices are to be, and not how one pass goes about it.
KEPT_DEVICES = tuple(name for name in DEVICES if name not in ("acknowledge", "signed_spec", "max_disruption"))


def of_one(unit: Unit, max_disruption: str, records: Records) -> None:
    """Have the limit of one unit's own pass remembered with it."""
    limits = limits_without(records, (unit.name,))
    records.options(limits=limits if max_disruption == HIGHEST else {**limits, unit.name: max_disruption})


def kept(unit: Unit, settings: Mapping[str, Any] | None, records: Records) -> Unit:
    """The unit, which has its settings (None: it goes) remembered as soon as a plan was made, or has to wait."""
    return watched(unit, lambda: records.ask_unit(unit.name, settings)) if unit.recorded else unit


def kept_devices(unit: Unit, params: Mapping[str, Any], records: Records) -> Unit:
    """The goal of holds, which has its options remembered as soon as a plan was made, or has to wait."""
    options = {name: params[name] for name in KEPT_DEVICES}
    return watched(unit, lambda: records.ask(devices=options))


def watched(unit: Unit, keep: Callable[[], None]) -> Unit:
    """The unit, which calls `keep` once its settings are accepted: checked, looked at and planned without a refusal."""

    def look(host: Any, settings: Any, past: Past) -> Any:
        try:
            return unit.look(host, settings, past)
        except Refused:
            raise
        except Fault:
            keep()
            raise

    def planned(plan: Callable[[], Plan]) -> Plan:
        try:
            found = plan()
        except (Refused, Question):
            raise
        except Fault:
            keep()
            raise
        keep()
        return found

    return unit._replace(
        look=look,
        plan=lambda settings, now, past: planned(lambda: unit.plan(settings, now, past)),
        absent=lambda now, past: planned(lambda: unit.absent(now, past)),
    )


def limits_without(records: Records, units: Collection[str]) -> dict[str, str]:
    """The limits that are remembered of other units than these."""
    try:
        limits = records.asked().get("limits", {})
    except Fault:  # a damaged record is written anew
        return {}
    return {unit: limit for unit, limit in limits.items() if unit not in units}
