# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor: what is wrong on a host, or can go wrong; the module host_doctor, the program's doctor, the helper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import host as machine
from ..core.errors import Fault, StepFailed
from ..plan.doctor_seen import FAILURE, Agent, Finding, Snapshot
from ..plan.section import FAILED


def run_doctor(argument_spec: dict[str, Any]) -> None:
    """Look at the host by the module's options, and exit."""
    from .module import leave, start  # Ansible: the look below is made without it too

    module = start(argument_spec)
    result = doctor_result()
    leave(module, result, failure_of(result, module.params["fail_on"]) or None)


def doctor_result() -> dict[str, Any]:
    """The findings, the worst first, and the worst level as `state`. Changes nothing.

    As root sees the host, where this process is root or a helper is there; else as this account does.
    """
    from .opening import asks_helper

    unheard: tuple[Finding, ...] = ()
    try:
        if asks_helper():
            from .through_helper import asked_of_helper

            return asked_of_helper("host.doctor")
    except Fault as fault:  # that is what a doctor is for: what needs no root is looked at all the same
        unheard = (Finding("helper", FAILURE, fault.message),)
    return _doctor(unheard)


def _doctor(unheard: tuple[Finding, ...]) -> dict[str, Any]:
    from ..core.predict import PredictedHost
    from ..plan.doctor import findings, in_order, state_of
    from ..plan.status_text import of_doctor

    found = in_order((*unheard, *findings(snapshot(PredictedHost(machine.Host())))))
    result = {"changed": False, "state": state_of(found), "findings": [dict(one._asdict()) for one in found]}
    return {**result, "report": of_doctor(result)}


def snapshot(host: machine.Host) -> Snapshot:
    """The look, with what intent and the agent's record add to it; over a predicted host, which changes nothing."""
    from ..core.unknown import later
    from ..look.doctor import look
    from ..plan.release import VERSION
    from .standing import trust

    seen = look(host)
    program: Any = later(lambda: seen.program._replace(own=VERSION))
    agent: Any = later(_agent, host, seen)
    return seen._replace(trust=later(trust, host), program=program, agent=agent)


def _agent(host: machine.Host, seen: Snapshot) -> Agent:
    if not seen.agent.installed:
        return seen.agent
    from .repairs import AGENT
    from .repairs import seen as remembered

    host.read(AGENT)  # what this account may not see is no record that is not there
    last = remembered(host)["last"] or {}
    ends = [last[part] for part in ("host", "devices") if last.get(part)]
    # What only waits, for a reboot or a GPU that is busy, is told by the status, and no fault.
    return seen.agent._replace(says="; ".join(end["message"] for end in ends if end["state"] == FAILED))


def failure_of(result: dict[str, Any], fail_on: str) -> str:
    """Why the findings fail a task, "" where they do not."""
    from ..plan.doctor import verdict

    try:
        found = [Finding(one["check"], one["level"], one["message"]) for one in result["findings"]]
    except (KeyError, TypeError):
        fault = StepFailed("bcd helper's answer has no findings: bring helper and collection to one version")
        return "" if fail_on == "never" else fault.message
    return verdict(found, fail_on)


def doctor_text(result: Mapping[str, Any]) -> str:
    """The findings for a person."""
    from ..plan.status_text import of_doctor

    return "\n".join(of_doctor(result)) + "\n"
