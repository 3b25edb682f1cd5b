# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results as host_plan returns them, for the tests of what the controller makes of them."""

from __future__ import annotations

from typing import Any

WRITE = {"action": "write /etc/sysctl.d/90-bcd.conf", "disruption": "none", "done": False}
REBOOT = 'cpu: CPUs 4-7 are isolated from the next boot (now: ""): reboot the node'


def unit(name: str, state: str = "converged", **more: Any) -> dict[str, Any]:
    """One unit's result."""
    empty: dict[str, Any] = {key: [] for key in ("steps", "pending", "conditions", "notes", "diff")}
    return {"unit": name, "state": state, "changed": False, "reboot_required": False, **empty, **more}


def waits(reason: str, message: str) -> list[dict[str, str]]:
    """What a unit waits for."""
    return [{"reason": reason, "message": message}]


def refused(name: str, message: str) -> dict[str, Any]:
    """A unit that was refused."""
    return unit(name, "failed", reason="Refused", retryable=False, msg=message)


def stuck(name: str, message: str, retryable: bool = True) -> dict[str, Any]:
    """A unit of which a step failed."""
    state = "progressing" if retryable else "failed"
    return unit(name, state, reason="StepFailed", retryable=retryable, msg=message)


def governors(number: int) -> list[dict[str, Any]]:
    """The steps that set the governor of so many CPUs."""
    action = "set the governor of CPU {} to performance (now: powersave)"
    return [{"action": action.format(cpu), "disruption": "none", "done": False} for cpu in range(number)]


def plan(state: str, *units: dict[str, Any], message: str = "", **more: Any) -> dict[str, Any]:
    """A whole host's result."""
    section: dict[str, Any] = {"state": state, "message": message, "observed_generation": None, "conditions": []}
    return {"units": list(units), "section": section, "reboot_required": False, "changed": False, **more}


def holds(state: str, *failures: tuple[str, str], message: str = "", **more: Any) -> dict[str, Any]:
    """A result of cdi_holds, with the assignments that failed."""
    failed = [{"allocation_id": name, "reason": "overlap", "message": why} for name, why in failures]
    section = {"state": state.upper(), "message": message, "observed_generation": 1, "conditions": []}
    moved: dict[str, Any] = {key: [] for key in ("bound", "kept", "released", "releasing", "holds")}
    return {**unit("devices", state), **moved, "failures": failed, "section": section, **more}
