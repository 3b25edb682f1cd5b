# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds: GPUs, MIG devices and slots handed to allocations. What a section asks of a host becomes one plan.

In this order: pending releases, holds that are not wanted any more, leftover slices, holds that stay, new holds, and
what cannot be honoured. So a section that moves a GPU from one allocation to another works, whatever its order.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.plan import Past, Plan, Todo
from ..core.unknown import is_known
from .assignment import Device, Section
from .devices_keep import keep
from .devices_release import leftovers, let_go
from .devices_seen import Held, Now
from .devices_work import Work
from .events import Journal
from .kube_releases import report


def plan(section: Section, now: Now, past: Past) -> Plan:
    """Every step from what the host shows to the section.

    `found` has what this look showed: `held` (the allocations), `releasing` and `failures`. An account that is not root
    changes nothing: all that it is told is why its new holds are none.
    """
    todo = Todo()
    journal = Journal(now.events)
    wanted = {assignment.allocation: assignment for assignment in section.assignments}
    releases = report(now if is_known(now.pods) else now._replace(pods={}), wanted)
    for pending in (*releases.free, *releases.waiting):
        wanted.pop(pending.allocation, None)
    work = Work(todo, section, now, journal, wanted, releases, {}, [])
    leaving = _plan_held(work) if now.root else {}
    failures = []
    if any(one.allocation not in now.held for one in section.assignments) or any(map(_is_lost, now.held.values())):
        from .devices_bind import Bind  # a host that has all its holds binds none

        bind = Bind(work, leaving, past.failed)
        bind.mend()
        failures = bind.new()
    if now.root:
        journal.settle(todo, section.acknowledge)
    todo.note(*work.notes)
    todo.found("held", sorted(now.held))
    todo.found("releasing", [release.allocation for release in now.releases])
    todo.found("failures", failures)
    return todo.plan()


def _plan_held(work: Work) -> Mapping[str, tuple[Device, ...]]:
    """What becomes of the holds that are there; the devices that this sets free, by allocation."""
    leaving = let_go(work)
    leftovers(work)
    if work.section.passthrough or not is_known(work.now.passed) or work.now.passed:
        from .passthrough import keep as remember

        remember(work.todo, work.section, work.now)
    keep(work)
    return leaving


def _is_lost(held: Held) -> bool:
    return bool(held.fault)
