# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The holds of a host: no unit of the host's section, but a goal of the same runner."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Plan, Unit
from ..plan import assignment
from ..plan import devices as planner
from ..plan.devices_seen import Now


def look(host: Host, section: assignment.Section | None, past: Past) -> Now:
    """Holds, releases, events, and as much of the host as the section needs; nothing without a section."""
    if section is None:
        return Now()
    from ..look.devices import look as devices

    return devices(host, section, past)


def absent(_now: Now, _past: Past) -> Plan:
    """Nothing: a host that is to hold nothing has a section without assignments."""
    return Plan()


UNIT = Unit(assignment.UNIT, assignment.FIELDS, assignment.check, look, planner.plan, absent, recorded=False)
