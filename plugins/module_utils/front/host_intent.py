# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a signed spec asks of this host, where it verifies: the module host_intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import Fault, StepFailed
from ..core.host import Host
from .result import of_fault

UNSEEN = (
    "only root sees what this host pins, so whether the signed spec counts here cannot be said: set become: true, or "
    "enroll the host with its helper"
)
HIDDEN = "(not shown)"


def run_intent(argument_spec: dict[str, Any]) -> None:
    """Verify by the module's options, and exit."""
    from .module import leave, start

    module = start(argument_spec)
    leave(module, intent_result(module.params["signed_spec"]))


def intent_result(signed_spec: Mapping[str, Any]) -> dict[str, Any]:
    """The result of the module: what the spec says, or why this host does not take it. Nothing is remembered."""
    from .opening import asks_helper

    try:
        if asks_helper():
            from .through_helper import asked_of_helper

            return asked_of_helper("host.intent", signed_spec=signed_spec, check=False)
        return _told(signed_spec)
    except Fault as fault:
        return of_fault(fault)


def _told(signed_spec: Mapping[str, Any]) -> dict[str, Any]:
    from ..core.predict import PredictedHost
    from .trust import intend

    intent = intend(PredictedHost(Host()), signed_spec)
    if intent is None or not intent.verified:
        raise StepFailed(UNSEEN, retryable=False)
    return {
        "changed": False,
        "node_id": intent.node_id,
        "generation": intent.generation,
        "units": None if intent.host is None else {unit: dict(settings) for unit, settings in intent.host.items()},
        "devices": None if intent.devices is None else [_without_values(one) for one in intent.devices],
    }


def _without_values(assignment: Mapping[str, Any]) -> dict[str, Any]:
    """An assignment whose env lines show their keys alone, as no result shows their values."""
    if "env" not in assignment:
        return dict(assignment)
    env = assignment["env"]
    return {**assignment, "env": [_without_value(line) for line in env] if isinstance(env, list) else HIDDEN}


def _without_value(line: Any) -> str:
    """What is no line of an env file is hidden whole: it may be a value all the same."""
    key, equals, _value = line.partition("=") if isinstance(line, str) else ("", "", "")
    return f"{key}={HIDDEN}" if equals else HIDDEN
