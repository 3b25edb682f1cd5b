# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass did to one unit, as values."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NamedTuple
else:
    from .named import NamedTuple

# How much of what runs on the host a step disturbs, mildest first; `reboot` is never run.
DISRUPTIONS = ("none", "service", "gpu", "reboot")


class Pending(NamedTuple):
    """Something the unit waits for. `reason` is RebootRequired, Busy, NotReady or HeldBack."""

    reason: str
    message: str
    lane: str = ""


class Condition(NamedTuple):
    """A fault or a fact that others act on, such as FabricManagerDown; `status` is "true" while it lasts."""

    type: str
    status: str
    reason: str
    message: str


class Done(NamedTuple):
    """A line of the result's `steps`; one that is `later` says what is not known yet."""

    action: str
    disruption: str
    done: bool
    later: bool = False


class Failure(NamedTuple):
    """Why a unit's task fails: `reason` is Refused or StepFailed."""

    reason: str
    message: str
    retryable: bool


class Outcome(NamedTuple):
    """What one pass did to one unit."""

    unit: str
    changed: bool
    state: str
    pending: tuple[Pending, ...]
    conditions: tuple[Condition, ...]
    steps: tuple[Done, ...]
    notes: tuple[str, ...]
    diff: tuple[Mapping[str, str], ...]
    failure: Failure | None
    found: Mapping[str, Any] = {}
    needs: tuple[str, ...] = ()  # references of the secrets that a step due wants and that were not given

    @property
    def differs(self) -> bool:
        """Whether steps are still to be taken: check mode, or they failed or were held back."""
        return any(not line.done for line in self.steps)


def joined(failures: list[Failure]) -> Failure | None:
    """One failure for all lanes: retryable while any is."""
    if not failures:
        return None
    messages = list(dict.fromkeys(failure.message for failure in failures))
    return Failure("StepFailed", "; ".join(messages), any(failure.retryable for failure in failures))


def our_fault(fault: Exception) -> str:
    """A fault of this collection's own, with the place where it arose."""
    at = fault.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = f"{at.tb_frame.f_code.co_filename.rpartition('/')[2]} line {at.tb_lineno}" if at is not None else "no place"
    return f"{type(fault).__name__}: {fault} ({place}): this is a fault of the collection's own: report it"
