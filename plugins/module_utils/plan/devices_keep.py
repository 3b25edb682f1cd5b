# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds that are wanted and there: what of them is missing or not as it should be is made again.

A hold never changes while it is held. A reboot takes its slice and its env file; a new driver changes what its
specification must say.
"""

from __future__ import annotations

from ..core.errors import NotKnownYet, NotReady, StepFailed
from ..core.step import write
from . import hold_spec
from .assignment import HOLD, Assignment
from .atoms import parent
from .device_atoms import Failure, Resolved, resolve
from .devices_seen import BINDING, BOUND, Held
from .devices_work import Work
from .hold_record import record_path, render


def keep(work: Work) -> None:
    """Plan what the kept holds need, each in its own lane, in the section's order."""
    for allocation, assignment in work.wanted.items():
        held = work.now.held.get(allocation)
        if held is not None and not held.fault:
            with work.todo.lane(held.allocation):
                _keep(work, filled(work, held, assignment), assignment)


def filled(work: Work, held: Held, assignment: Assignment) -> Held:
    """A hold whose record is lost, with what its specification does not say; the devices are those that it names."""
    if held.record_text is not None:
        return held
    has_none = held.limits is None and held.binding == HOLD  # else it would name its slice
    return held._replace(
        reservation=held.reservation or assignment.reservation,
        generation=held.generation or work.section.generation,
        limits=None if has_none else assignment.limits or held.limits,
        env=assignment.env if held.env_text is None else held.env,
    )


def _keep(work: Work, held: Held, assignment: Assignment) -> None:
    _say_what_waits(work, held, assignment)
    settle_slice(work, held)
    put(work, record_path(held.allocation), render(held), held.record_text, held, mode=0o600)
    try:
        resolved = resolve(held.devices, work.cards())
    except (NotKnownYet, NotReady):
        _restore_env(work, held)
        raise
    if isinstance(resolved, Failure):
        _restore_env(work, held)
        message = f"{held.allocation}: {resolved.message}: its hold stands, and waits until the device is there again"
        work.todo.wait("NotReady", message)
        return
    now, visible = work.now, [each.visible for each in resolved]
    put(work, hold_spec.env_path(held.allocation), hold_spec.env_file(held, visible, now.mps), held.env_text, held)
    put(work, hold_spec.spec_path(held.allocation), spec_of(work, held, resolved), held.spec_text, held)
    try:
        hold_spec.require_paths(held, resolved, now.vendors, now.wsl)
    except StepFailed as fault:
        work.todo.wait("NotReady", fault.message)
    if held.state == BINDING:
        complete(work, held)


def spec_of(work: Work, held: Held, resolved: tuple[Resolved, ...]) -> str:
    """The text of the hold's CDI specification, and what there is to say of it; raises StepFailed."""
    now, ceiling = work.now, work.section.ceiling
    text = hold_spec.render(held, resolved, now.vendors, now.mps, now.wsl, ceiling)
    work.note(*hold_spec.notes(held, resolved, now.vendors, now.wsl, ceiling))
    return text


def settle_slice(work: Work, held: Held) -> None:
    """Bring the hold's slice to its limits, where it has one: pods have the kubelet's."""
    if held.limits is not None and held.binding == HOLD:
        from . import slices

        seen = work.now.slices.get(held.allocation)
        slices.settle(work.todo, held.allocation, held.limits, seen, work.now.controllers)


def put(work: Work, path: str, text: str, shown: str | None, held: Held, mode: int = 0o644) -> None:
    """Write a file of the hold that is missing, or other than it should be."""
    if text == shown and path not in held.askew:
        return
    why = "" if shown is None and path not in held.askew else " again: it is not as the hold is"
    work.todo.add(write(path, text, f"write {path}{why}", mode=mode))


def complete(work: Work, held: Held) -> None:
    """What ends a bind, once every file is in place: its event, and the record that says so."""
    from .events import bound

    work.journal.add(work.todo, bound(held, work.section, work.now.boot_id, hold_spec.cgroup_parent(held)))
    path = record_path(held.allocation)
    record = render(held._replace(state=BOUND))
    work.todo.add(write(path, record, f"write {path}: {held.allocation} is bound", mode=0o600))


def _restore_env(work: Work, held: Held) -> None:
    """The env file of a hold whose devices are not to be seen now, as far as its own specification tells them."""
    path = hold_spec.env_path(held.allocation)
    if held.env_text is not None and path not in held.askew:
        return
    visible = hold_spec.visible_in(held.spec_text or "")
    if not visible and all(device.device_class != "gpu.mig" for device in held.devices):
        visible = tuple(parent(device.id) or device.id for device in held.devices)
    if visible:
        put(work, path, hold_spec.env_file(held, visible, work.now.mps), held.env_text, held)


def _say_what_waits(work: Work, held: Held, wanted: Assignment) -> None:
    """Note what an assignment asks of a hold that has it otherwise."""
    pairs = {
        "binding": (held.binding, wanted.binding),
        "devices": ({one.id for one in held.devices}, {one.id for one in wanted.devices}),
        "limits": (held.limits, wanted.limits),
        "env": (held.env, wanted.env),
        "reservation_id": (held.reservation, wanted.reservation),
    }
    changed = [name for name, (has, asked) in pairs.items() if has != asked]
    if changed:
        work.note(
            f"{held.allocation}: the assignment changed its {', '.join(changed)}, and a hold stays as it was bound: "
            "release it, and assign it anew"
        )
