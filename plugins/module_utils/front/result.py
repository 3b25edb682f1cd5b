# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit's outcome as the keys that every unit returns."""

from __future__ import annotations

from typing import Any

from ..core.errors import Fault, Refused, StepFailed
from ..core.outcome import Failure, Outcome

# What nobody verifies must not look as if it had been.
UNVERIFIED = "signed_spec is given, and this version cannot verify a signed_spec: give units without it"


def render(outcome: Outcome) -> dict[str, Any]:
    """The result keys of one unit, in success and failure alike; `reason`, `retryable` and `msg` only on failure."""
    result: dict[str, Any] = {
        "unit": outcome.unit,
        "changed": outcome.changed,
        "state": outcome.state,
        "pending": [{"reason": wait.reason, "message": wait.message} for wait in outcome.pending],
        "reboot_required": any(wait.reason == "RebootRequired" for wait in outcome.pending),
        "conditions": [condition._asdict() for condition in outcome.conditions],
        "steps": [{"action": step.action, "disruption": step.disruption, "done": step.done} for step in outcome.steps],
        "notes": list(outcome.notes),
        "diff": list(outcome.diff),
    }
    if outcome.failure is not None:
        result.update(reason=outcome.failure.reason, retryable=outcome.failure.retryable, msg=outcome.failure.message)
    return result


def failed(unit: str, fault: Fault) -> Outcome:
    """The outcome of a unit that came to nothing."""
    retryable = isinstance(fault, StepFailed) and fault.retryable
    reason = "Refused" if isinstance(fault, Refused) else "StepFailed"
    return Outcome(
        unit=unit,
        changed=False,
        state="progressing" if retryable else "failed",
        pending=(),
        conditions=(),
        steps=(),
        notes=(),
        diff=(),
        failure=Failure(reason, fault.message, retryable),
    )
