# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One slice of a hold by itself, for a workload manager that keeps its holds itself: it has its limits, or is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.host import Host
from ..core.plan import Past, Plan, Todo, Unit
from ..plan import slices as planner
from ..plan.assignment import MOST, OF_LIMITS, Limits
from ..plan.devices_seen import Slice
from ..plan.settings import strict

NAME = "slice"


class Now(NamedTuple):
    """The slice as it is, None where it is not, and what this host's cgroups offer."""

    slice: Slice | None
    controllers: Mapping[str, str] = {}


def check(given: Mapping[str, Any]) -> Limits:
    """The limits; raises Refused for some that are none."""
    found = strict(NAME, OF_LIMITS, given)
    wrong = [f"{key} is {value}" for key, value in found.items() if isinstance(value, int) and not 0 <= value <= MOST]
    limits = Limits(**{key: value or None for key, value in found.items()})
    fault = f"{', '.join(wrong)}, and takes 0 to {MOST}" if wrong else planner.fault(limits)
    if fault:
        raise Refused(f"{NAME}: {fault}: correct the limits")
    return limits


def of(allocation: str) -> Unit:
    """The slice of this allocation as a goal of the runner, which no record of applied units names."""

    def look(host: Host, settings: Limits | None, _past: Past) -> Now:
        from ..look.slices import controllers, slices

        return Now(slices(host).get(allocation), controllers(host) if settings is not None else {})

    def plan(settings: Limits, now: Now, _past: Past) -> Plan:
        todo = Todo()
        with todo.lane(allocation):
            planner.settle(todo, allocation, settings, now.slice, now.controllers)
        return todo.plan()

    def absent(now: Now, _past: Past) -> Plan:
        todo = Todo()
        with todo.lane(allocation):
            if now.slice is not None and now.slice.populated:
                todo.wait("Busy", f"{planner.name(allocation)} has processes, and is stopped once they have ended")
            planner.stop(todo, allocation, now.slice)
        return todo.plan()

    return Unit(NAME, OF_LIMITS, check, look, plan, absent, recorded=False)
