# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Acknowledged events, dropped by themselves: no hold is looked at, and none is touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused, StepFailed
from ..core.host import Host
from ..core.plan import Field, Past, Plan, Unit
from ..look.events import events
from ..look.holds import releasing
from ..plan import events as planner
from ..plan.assignment import UNIT as NAME
from ..plan.devices_seen import Event, Held

FIELDS = (Field("acknowledge", "acknowledge", (list,)),)


def check(given: Mapping[str, Any]) -> frozenset[str]:
    """The ids of the events that were accepted."""
    return frozenset(given["acknowledge"])


def look(host: Host, accepted: frozenset[str], _past: Past) -> planner.Reported:
    """The journal, and of the accepted events what they tell of."""
    journal = events(host)
    mine = [event for event in journal if event.id in accepted and not event.fault]
    if not mine:
        return planner.Reported(journal)
    waiting = releasing(host)
    lost = any(release.fault for release in waiting)
    names = {release.allocation for release in waiting}
    unfinished = (
        event.id for event in mine if planner.goes_on(event, _held(host, event), lost or event.allocation in names)
    )
    return planner.Reported(journal, frozenset(unfinished))


def _held(host: Host, event: Event) -> Held | None:
    from ..plan.hold_record import parse, record_path

    path = record_path(event.allocation)
    try:
        text = host.read(path)
        return None if text is None else parse(path, text)
    except StepFailed as fault:
        return Held(event.allocation, fault=fault.message)


def _absent(_now: planner.Reported, _past: Past) -> Plan:
    raise Refused("events are no unit that can be removed: acknowledge them")


UNIT = Unit(NAME, FIELDS, check, look, planner.acknowledge, _absent, recorded=False)
