# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds that are not wanted any more: their files go, their devices are reported free, their slices are stopped.

A plain hold goes in the pass that sees it gone. Of a Kubernetes hold pods may have devices still: its release is
recorded, the hold withdrawn, and the release reported once no pod has a device of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.step import fail, remove, write
from ..core.unknown import is_known
from .assignment import KUBERNETES, Device
from .devices_seen import Held
from .devices_work import Work
from .hold_record import record_path, render

# Lanes: of releasing.json, of what holds left behind. A space: no allocation is called so.
RELEASES, SLICES = "Kubernetes releases", "leftover slices"


def let_go(work: Work) -> Mapping[str, tuple[Device, ...]]:
    """Plan every release; the devices, by allocation, that are free once the steps of this plan have been taken."""
    pending = {release.allocation for release in work.now.releases}
    leaving: dict[str, tuple[Device, ...]] = {}
    with work.todo.lane(RELEASES):
        leaving.update(_releases(work))
    for allocation, held in work.now.held.items():
        if allocation in work.wanted:
            continue
        with work.todo.lane(allocation):
            if held.fault:
                work.todo.add(fail(f"release {allocation}", held.fault, retryable=False))
            elif held.binding == KUBERNETES or allocation in pending:
                leaving[allocation] = held.devices
                if allocation in pending:
                    _withdraw(work, held)
            else:
                leaving[allocation] = held.devices
                _release(work, held)
    return leaving


def _release(work: Work, held: Held) -> None:
    """The files, the event, the slice once it is empty; the record last: until then the release is not through."""
    from .events import released

    path = record_path(held.allocation)
    if held.record_text != render(held):  # what is to be reported outlasts the specification that tells it
        work.todo.add(write(path, render(held), f"write {path}, which was lost, to release it", mode=0o600))
    _remove_files(work, held)
    work.journal.add(work.todo, released(held, work.section, work.now.boot_id))
    _stop_slice(work, held.allocation)
    work.todo.add(remove(path, f"remove {path}: {held.allocation} is released"))


def _withdraw(work: Work, held: Held) -> None:
    """What the device plugins advertise goes at once; releasing.json has the rest."""
    path = record_path(held.allocation)
    _remove_files(work, held)
    _stop_slice(work, held.allocation)
    if held.record_text is not None or path in held.askew:
        work.todo.add(remove(path, f"remove {path}: {held.allocation} is withdrawn"))


def _remove_files(work: Work, held: Held) -> None:
    from .hold_spec import env_path, spec_path

    env, spec = env_path(held.allocation), spec_path(held.allocation)
    if held.env_text is not None or env in held.askew:
        work.todo.add(remove(env, f"remove {env}: {held.allocation} is not wanted any more"))
    if held.spec_text is not None or spec in held.askew:
        work.todo.add(remove(spec, f"remove {spec}: {held.allocation} is not wanted any more"))


def _stop_slice(work: Work, allocation: str) -> None:
    seen = work.now.slices.get(allocation)
    if seen is not None:
        from . import slices

        slices.stop(work.todo, allocation, seen)


def leftovers(work: Work) -> None:
    """Stop slices whose workload outlived its hold, once they are empty."""
    with work.todo.lane(SLICES):
        for allocation in work.now.slices:
            if allocation not in work.wanted and allocation not in work.now.held:
                with work.todo.lane(allocation):
                    _stop_slice(work, allocation)


def _releases(work: Work) -> Mapping[str, tuple[Device, ...]]:
    """releasing.json, written once for all: what is taken back and what is reported leaves it, what is new comes."""
    now, turn = work.now, work.releases
    pending = {release.allocation for release in now.releases}
    fresh = [
        held
        for held in now.held.values()
        if held.binding == KUBERNETES and not held.fault and held.allocation not in {*work.wanted, *pending}
    ]
    if not (pending or fresh or now.unread_releases or now.lost_releases):
        return {}
    from . import kube_releases as kube
    from .events import released

    told = now if is_known(now.pods) else now._replace(pods={})
    kube.conditions(work.todo, told if is_known(now.strangers) else told._replace(strangers=""), turn.waiting)
    if kube.quarantine(work.todo, now):
        return {}
    free = [release for release in turn.free if release.allocation not in now.held]  # what is not withdrawn waits
    for release in free:
        work.journal.add(work.todo, released(release, work.section, now.boot_id))
    gone = {release.allocation for release in (*turn.back, *free)}
    left = [release for release in now.releases if release.allocation not in gone]
    if gone or fresh:
        work.todo.add(kube.rewrite([*left, *(kube.release(held, now.time) for held in fresh)]))
    for held in fresh:  # behind that in its lane: nothing is withdrawn that is not recorded
        _withdraw(work, held)
    kube.settle_lost(work.todo, now)
    if pending and not is_known(now.pods):
        bool(now.pods)  # raises why it is not known who has the devices
    return {release.allocation: release.devices for release in (*turn.back, *free)}
