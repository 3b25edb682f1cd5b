# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New holds, in the section's order: what speaks against one, else the steps that bind it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..core.errors import StepFailed
from ..core.step import fail, write
from ..core.unknown import is_known
from . import hold_spec, slices
from .assignment import BINDINGS, Assignment, Device
from .conflicts import Claims
from .device_atoms import Failure, Resolved, resolve, unsupported
from .devices_booking import UNREADABLE_MEMORY, Booking, books
from .devices_keep import complete, settle_slice, spec_of
from .devices_release import RELEASES
from .devices_seen import BINDING, Held, Now
from .devices_work import Work
from .hold_record import record_path, render
from .holds import PENDING

UNPRIVILEGED = (
    "bcd node runs without root and without [helper]: it cannot write /etc/cdi or create hold slices "
    "(run bcd node as root, or under bcd helper)"
)


class Bind:
    """The claims and bookings of one plan: each new hold is held to them, and counts in them for those after it.

    `leaving` are the devices that are free once this plan's releases are through. A new hold that wants one of them is
    bound by the look after, so that a release which fails never leaves one device to two. `failed` are the lanes that
    failed in this run.
    """

    def __init__(self, work: Work, leaving: Mapping[str, tuple[Device, ...]], failed: Collection[str]) -> None:
        self._work = work
        self._leaving = Claims()
        now = work.now
        self._lost_stay = _are_lost(now) and not (_are_settled(now) and RELEASES not in failed)
        if _are_lost(now) and not self._lost_stay:
            self._leaving.add_every(PENDING)
        for allocation, devices in leaving.items():
            self._leaving.add(allocation, devices)
        self._leaves = leaving
        self._claims: list[Claims] = []
        self._lost: list[str] = []  # holds that count as holding every GPU
        self._booking = Booking(work, leaving)

    def mend(self) -> None:
        """Bind anew what is wanted and there, and whose files do not say what it holds: nobody knows but the section.

        Where something speaks against that, it counts as holding every GPU, and its lane fails.
        """
        every: list[str] = []
        for wanted in self._work.wanted.values():
            held = self._work.now.held.get(wanted.allocation)
            if held is None or not held.fault:
                continue
            every.append(wanted.allocation)
            with self._work.todo.lane(wanted.allocation):
                failure = self._new(wanted)
                if failure is None:
                    self._leaving.add_every(every.pop())
                    self._work.note(
                        f"{wanted.allocation}: neither its record nor its CDI specification could be made out, and it "
                        "is bound anew as the section has it"
                    )
                else:
                    message = f"{held.fault} (it is not bound anew, since {failure.message})"
                    self._work.todo.add(fail(f"bind {wanted.allocation} anew", message, retryable=False))
        self._lost = every
        for claims in self._claims:  # where they are known yet
            for allocation in every:
                claims.add_every(allocation)

    def new(self) -> list[dict[str, str]]:
        """Plan the holds that are not there; of each that cannot be honoured its allocation, reason and message."""
        from .events import failed

        work, found = self._work, []
        for wanted in work.section.assignments:
            if wanted.allocation in work.now.held:
                continue
            with work.todo.lane(wanted.allocation):
                if wanted.allocation not in work.wanted:
                    pending = f"{wanted.allocation}: its release waits for pods that have what it had"
                    work.todo.wait("NotReady", f"{pending}: it is bound anew once they are gone")
                    continue
                failure = self._new(wanted)
                if failure is None:
                    continue
                found.append({"allocation_id": wanted.allocation, **failure._asdict()})
                if work.now.root:  # another account can write nothing
                    work.journal.add(work.todo, failed(wanted.allocation, work.section.generation, *failure))
        return found

    def _new(self, wanted: Assignment) -> Failure | None:
        """Plan one hold, or say what it waits for; its failure where the first of the checks that fails decides."""
        resolved = self._resolved(wanted)
        if isinstance(resolved, Failure):
            return resolved
        conflict = self._firm().conflict(wanted.devices)
        if conflict:
            return Failure("overlap", conflict)
        waits: str | Failure = self._leaving.conflict(wanted.devices)
        fault = "" if waits else slices.fault(wanted.limits)
        if fault:  # a pass may mend it: until then its devices are nobody else's
            self._firm().add(wanted.allocation, wanted.devices)
            raise StepFailed(fault)
        waits = waits or self._booking.admit(wanted.limits)
        if isinstance(waits, Failure):
            return waits
        if waits:
            self._leaving.add(wanted.allocation, wanted.devices)
            self._booking.wait(wanted.limits)
            self._work.todo.wait("NotReady", f"{wanted.allocation}: {waits}: it is bound once that is released")
            return None
        self._firm().add(wanted.allocation, wanted.devices)
        self._steps(wanted, resolved)
        return None

    def _firm(self) -> Claims:
        """What is held whatever becomes of this plan; raises what keeps virtual machines from being seen."""
        if not self._claims:
            claims = _claims(self._work, self._leaves)
            for allocation in (*self._lost, *((PENDING,) if self._lost_stay else ())):
                claims.add_every(allocation)
            self._claims.append(claims)
        return self._claims[0]

    def _resolved(self, wanted: Assignment) -> tuple[Resolved, ...] | Failure:
        """The devices, when nothing but other holds and the host's memory can speak against the hold."""
        if wanted.binding not in BINDINGS:
            return Failure("unsupported-binding", f"binding {wanted.binding} is not supported")
        if not self._work.now.root:
            return Failure("node-unprivileged", UNPRIVILEGED)
        return unsupported(wanted.devices) or resolve(wanted.devices, self._work.cards(), self._work.section.slots)

    def _steps(self, wanted: Assignment, resolved: tuple[Resolved, ...]) -> None:
        """Slice, record, specification, env file, event, and the record that it is bound; raises StepFailed before."""
        work, now = self._work, self._work.now
        held = Held(
            wanted.allocation,
            wanted.devices,
            wanted.binding,
            wanted.reservation,
            work.section.generation,
            wanted.limits,
            wanted.env,
            work.journal.free_time(wanted.allocation, work.section.generation, now.time),
            BINDING,
        )
        hold_spec.require_paths(held, resolved, now.vendors, now.wsl)
        spec = spec_of(work, held, resolved)
        env = hold_spec.env_file(held, [each.visible for each in resolved], now.mps)
        settle_slice(work, held)
        name = held.allocation
        unchecked = f" ({UNREADABLE_MEMORY})" if now.memory is None and books(held.limits) else ""
        files = (
            (record_path(name), render(held), 0o600, f"{name} is to be held{unchecked}"),
            (hold_spec.spec_path(name), spec, 0o644, f"the CDI specification of {name}"),
            (hold_spec.env_path(name), env, 0o644, f"the env file of {name}"),
        )
        for path, text, mode, what in files:
            work.todo.add(write(path, text, f"write {path}: {what}", mode=mode))
        complete(work, held)


def _claims(work: Work, leaving: Mapping[str, tuple[Device, ...]]) -> Claims:
    """The devices of VMs, of holds that stay, and of releases that still wait."""
    from .passthrough import passed_on

    now = work.now
    claims = Claims(passed_on(work.section, now))
    for held in now.held.values():
        if held.fault and held.allocation not in work.wanted:
            claims.add_every(held.allocation)
        elif not held.fault and held.allocation not in leaving:
            claims.add(held.allocation, held.devices)
    for release in now.releases:
        if release.allocation not in leaving:
            claims.add(release.allocation, release.devices)
    return claims


def _are_lost(now: Now) -> bool:
    """Whether there are pending releases that nobody can make out."""
    return bool(now.unread_releases or now.lost_releases)


def _are_settled(now: Now) -> bool:
    """Whether the plan does what it can of them: the look after tells who has a GPU, or that nobody does."""
    return bool(now.unread_releases) or (is_known(now.strangers) and not now.strangers)
