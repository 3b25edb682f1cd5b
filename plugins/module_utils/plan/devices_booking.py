# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's memory and huge pages, as the new holds of one plan book them, one after another (see plan.admission)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .assignment import Limits
from .device_atoms import Failure
from .devices_keep import filled
from .devices_seen import Held
from .devices_work import Work

if TYPE_CHECKING:
    from .admission import Ledger

UNREADABLE_MEMORY = "host memory unreadable; binding without host-side admission"


def books(limits: Limits | None) -> bool:
    """Whether limits take memory of the host, or huge pages: these alone are admitted."""
    return limits is not None and any((limits.memory_bytes, limits.hugepages_2mi, limits.hugepages_1gi))


class Booking:
    """The bookings of one plan, in which the holds of `leaving` are being released.

    What they set free is not there before that is through: a hold that needs it waits, and those after it that book
    wait with it, so that the section's order is kept.
    """

    def __init__(self, work: Work, leaving: Iterable[str]) -> None:
        self._work = work
        held = work.now.held
        self._more_comes = any(books(held[name].limits) for name in leaving if name in held)
        self._one_waits = False
        self._ledger: list[Ledger] = []

    def wait(self, limits: Limits | None) -> None:
        """Say that a hold with these limits waits."""
        self._one_waits = self._one_waits or books(limits)

    def admit(self, limits: Limits | None) -> str | Failure:
        """Book the limits; what they wait for, "" for nothing, or why they cannot be had."""
        if limits is None or not books(limits):
            return ""
        if self._one_waits:
            return "one before it waits for memory"
        refusal = self._refusal(limits)
        if refusal and self._more_comes:
            return refusal
        return Failure("resources-exhausted", refusal) if refusal else ""

    def _refusal(self, limits: Limits) -> str:
        now = self._work.now
        if now.memory is None:
            self._work.note(UNREADABLE_MEMORY, *filter(None, (now.unreadable_memory,)))
        if not self._ledger:
            from .admission import Ledger

            self._ledger.append(
                Ledger(now.memory, self._booked(), now.slices, now.domains, self._work.section.instances)
            )
        return self._ledger[0].admit(limits)

    def _booked(self) -> Mapping[str, Held]:
        """The holds that are there, less those that are to be bound anew: these book for themselves."""
        wanted, held = self._work.wanted, self._work.now.held
        here = {name: filled(self._work, one, wanted[name]) for name, one in held.items() if name in wanted}
        return {name: here.get(name, one) for name, one in held.items() if not (one.fault and name in wanted)}
