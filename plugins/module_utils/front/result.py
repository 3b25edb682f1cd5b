# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit's outcome as the keys that every unit returns."""

from __future__ import annotations

from ..core.errors import Fault, NotReady, Refused, StepFailed
from ..core.outcome import Failure, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def render(outcome: Outcome) -> dict[str, Any]:
    """The result keys of one unit, in success and failure alike; `reason`, `retryable` and `msg` only on failure."""
    result: dict[str, Any] = {
        **outcome.found,
        "unit": outcome.unit,
        "changed": outcome.changed,
        "state": outcome.state,
        "pending": [{"reason": wait.reason, "message": wait.message} for wait in outcome.pending],
        "reboot_required": any(wait.reason == "RebootRequired" for wait in outcome.pending),
        "conditions": [condition._asdict() for condition in outcome.conditions],
        "steps": [{"action": step.action, "disruption": step.disruption, "done": step.done} for step in outcome.steps],
        "notes": list(outcome.notes),
        "diff": _folded(outcome.diff),
    }
    if outcome.failure is not None:
        result.update(reason=outcome.failure.reason, retryable=outcome.failure.retryable, msg=outcome.failure.message)
    return result


def _folded(diff: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Ansible's diff with one entry where many CPUs differ alike: a screen of a host with 256 of them stays one."""
    if not diff:
        return []
    from ..plan.folding import alike, of_any_cpu

    found = []
    for together in alike(diff, lambda entry: (of_any_cpu(entry["after_header"]), entry["before"], entry["after"])):
        first, more = dict(together[0]), len(together) - 1
        if more:
            first.update({key: f"{first[key]} and {more} more like it" for key in ("before_header", "after_header")})
        found.append(first)
    return found


def failed(unit: str, fault: Fault) -> Outcome:
    """The outcome of a unit that came to nothing."""
    retryable = isinstance(fault, NotReady) or (isinstance(fault, StepFailed) and fault.retryable)
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


def of_fault(fault: Fault) -> dict[str, Any]:
    """The keys of a result that has nothing but why it came to nothing."""
    failure = render(failed("", fault))
    return {key: failure[key] for key in ("changed", "reason", "retryable", "msg")}


def valid(value: Any) -> Any:
    """The value with every text fit for JSON: Ansible drops a whole result for one byte that is not UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {valid(key): valid(item) for key, item in value.items()}
    return [valid(item) for item in value] if isinstance(value, (list, tuple)) else value
