# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Status and doctor on the machine that runs this test, by root and by an account that is not, and as modules."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.doctor import doctor_result, failure_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.status import status_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.doctor import CHECKS, UNSEEN
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.pass_table import Pass

CHECKOUT = Path(__file__).resolve().parents[3]
GROUP = {"signed_spec": {"body": ""}, "max_disruption": "none", "_ansible_check_mode": True}


@pytest.fixture(params=["as this account", "without root"])
def account(request: pytest.FixtureRequest) -> Iterator[str]:
    """The account that looks; what it imports is imported before."""
    doctor_result()
    status_result()
    root = os.geteuid() == 0
    if root and request.param == "without root":
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield request.param
    finally:
        if root:
            os.seteuid(0)


def test_the_doctor_finds_no_fault_of_its_own(account: str) -> None:
    result = doctor_result()
    assert {one["check"] for one in result["findings"]} <= {*CHECKS, UNSEEN}, account
    assert not [one for one in result["findings"] if "a fault of the collection's own" in one["message"]]
    assert failure_of(result, "never") == ""


def test_the_status_tells_of_this_machine(account: str) -> None:
    result = status_result()
    assert (result["hostname"], result["root"]) == (os.uname().nodename, os.geteuid() == 0), account
    assert result["report"][0].startswith(f"{result['hostname']}: {result['state']}")


def ran(module: str, **options: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", f"ansible_collections.bettercompute.bcd.plugins.modules.{module}"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**GROUP, **options}}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / ".build")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.needs_ansible
def test_the_modules_take_what_the_action_group_gives_and_change_nothing() -> None:
    doctor = ran("host_doctor", fail_on="never")
    assert (doctor["changed"], {"state", "findings", "report"} <= set(doctor)) == (False, True)
    status = ran("host_status")
    assert (status["changed"], {"state", "units", "gpus", "trust", "report"} <= set(status)) == (False, True)


@pytest.mark.needs_ansible  # what runs on the controller
def test_the_pass_report_takes_a_status_for_what_it_is() -> None:
    """It has units with states, as a whole host's result has."""
    unit = {"unit": "cpu", "state": "progressing", "conditions": [], "steps": [], "notes": []}
    wait = {"reason": "RebootRequired", "message": "cpu: reboot the node"}
    section = {"state": "PROGRESSING", "message": "cpu: reboot the node", "observed_generation": 1, "conditions": []}
    table = Pass()
    assert table.add("gpu-01", {"changed": False, "units": [{**unit, "pending": [wait]}], "section": section})
    assert [line.split() for line in table.lines()[:2]] == [
        ["host", "state", "changed", "waits", "for", "failed"],
        ["gpu-01", "progressing", "-", "RebootRequired:", "cpu", "-"],
    ]
