# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet document and what makes a plan fail the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils import report

from .plans import REBOOT, WRITE, holds, plan, refused, stuck, unit, waits

DRIFTED = plan("PROGRESSING", unit("kernel-modules"), unit("sysctl", "progressing", steps=[WRITE]))
WAITING = plan(
    "PROGRESSING",
    unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT), reboot_required=True),
    reboot_required=True,
)
REFUSED = plan("FAILED", refused("sysctl", "kernel.core_pattern is refused"), message="kernel.core_pattern is refused")
UNPLANNED = plan(
    "PROGRESSING", unit("cpu", "progressing", reason="StepFailed", retryable=True, msg="cannot read /sys/x: I/O error")
)
UNREACHABLE = {"unreachable": True, "msg": "no route to host"}
CRASHED = {"failed": True, "msg": "'bcd_converge_units' is undefined"}
TWICE = plan("FAILED", message="the unit cpu is named twice")


def test_the_document_holds_every_host_and_counts_them() -> None:
    document = report.fleet_document(
        {"c": WAITING, "b": DRIFTED, "a": plan("CONVERGED"), "d": REFUSED, "e": UNREACHABLE, "f": CRASHED, "g": {}}
    )
    assert (document["kind"], document["version"], document["source"]) == ("FleetReport", 2, "plan")
    assert list(document["hosts"]) == list("abcdefg")
    assert document["summary"] == {
        "hosts": 7,
        "converged": 1,
        "progressing": 2,
        "failed": 1,
        "unreachable": 1,
        "unknown": 2,
        "drifted": 1,
        "failing": 1,
        "reboot_required": 1,
        "reboot_later": 0,
        "pools": {},
    }


def test_only_what_has_nothing_left_to_do_waits_for_a_reboot() -> None:
    waiting = unit("cpu", "progressing", steps=[WRITE], pending=waits("RebootRequired", REBOOT), reboot_required=True)
    planned = plan("PROGRESSING", waiting, reboot_required=True)
    summary = report.fleet_document({"planned": planned, "waiting": WAITING})["summary"]
    assert (summary["reboot_required"], summary["reboot_later"]) == (1, 1)


def test_a_host_with_a_failed_unit_is_counted_whatever_its_state() -> None:
    mixed = plan("PROGRESSING", refused("sysctl", "no"), WAITING["units"][0])
    document = report.fleet_document({"mixed": mixed, "stuck": UNPLANNED, "refused": REFUSED, "twice": TWICE})
    assert document["summary"]["failing"] == 4
    assert document["hosts"]["mixed"]["state"] == "progressing"
    assert document["hosts"]["mixed"]["failing"] == ["sysctl"]


@pytest.mark.parametrize("rc", [137, -9])
def test_a_killed_module_is_told_as_one(rc: int) -> None:
    told = {"failed": True, "rc": rc, "msg": "Module result deserialization failed: No start of json char found"}
    host = report.fleet_document({"a": told})["hosts"]["a"]
    assert host["message"] == f"the module was killed (rc {rc}; out of memory?): nothing is lost, run again"


def test_drift_is_steps_to_take_and_unconverged_is_more() -> None:
    hosts = report.fleet_document({"drifted": DRIFTED, "waiting": WAITING})["hosts"]
    assert (hosts["drifted"]["drift"], hosts["drifted"]["unconverged"]) == (["sysctl"], ["sysctl"])
    assert (hosts["waiting"]["drift"], hosts["waiting"]["unconverged"]) == ([], ["cpu"])


def test_hosts_without_a_plan_say_why() -> None:
    hosts = report.fleet_document({"e": UNREACHABLE, "f": CRASHED, "g": {}})["hosts"]
    assert (hosts["e"]["state"], hosts["e"]["message"]) == ("unreachable", "no route to host")
    assert (hosts["f"]["state"], hosts["f"]["message"]) == ("unknown", "'bcd_converge_units' is undefined")
    assert hosts["g"]["state"] == "unknown"
    assert hosts["g"]["message"]


def test_units_keep_their_order_and_a_failure_its_reason() -> None:
    host = report.fleet_document({"d": plan("FAILED", unit("iommu"), refused("sysctl", "no"))})["hosts"]["d"]
    assert [each["unit"] for each in host["units"]] == ["iommu", "sysctl"]
    assert "reason" not in host["units"][0]
    assert {key: host["units"][1][key] for key in ("reason", "retryable", "msg")} == {
        "reason": "Refused",
        "retryable": False,
        "msg": "no",
    }


def test_conditions_of_the_section_and_of_units_are_kept() -> None:
    rebooting = {"type": "RebootRequired", "status": "true", "reason": "cpu", "message": REBOOT}
    down = {"type": "MPSDown", "status": "true", "reason": "NotRunning", "message": "bcd-mps.service is not active"}
    result = plan("PROGRESSING", unit("gpu-sharing", "progressing", conditions=[down]))
    result["section"]["conditions"] = [down, rebooting]
    host = report.fleet_document({"a": result})["hosts"]["a"]
    assert host["conditions"] == [down, rebooting]
    assert host["units"][0]["conditions"] == [down]


def test_the_order_of_the_hosts_given_makes_no_difference() -> None:
    one = report.fleet_document({"a": DRIFTED, "b": WAITING})
    other = report.fleet_document({"b": WAITING, "a": DRIFTED})
    assert json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize(
    "garbage",
    [
        "text",
        {"units": "text", "section": "text"},
        {"units": [1, None, {"unit": 5, "steps": {"a": 1}, "pending": "x", "diff": [None]}], "section": {"state": "?"}},
        {"units": {"cpu": {}}, "section": {"conditions": 3}},
    ],
)
def test_what_no_module_of_ours_returns_breaks_nothing(garbage: Any) -> None:
    document = report.fleet_document({"odd": garbage})
    assert document["hosts"]["odd"]["state"] == "unknown"
    json.dumps(document)


def test_a_byte_that_is_no_text_can_be_written() -> None:
    told = plan("PROGRESSING", unit("sysctl", "progressing", notes=["caf\udce9"]))
    document = report.fleet_document({"a": told})
    assert document["hosts"]["a"]["units"][0]["notes"] == ["caf\ufffd"]


@pytest.mark.parametrize(
    ("result", "failing"),
    [
        (plan("CONVERGED", unit("cpu")), set()),
        (plan("CONVERGED"), set()),
        (DRIFTED, set()),
        (WAITING, {"progressing"}),
        (UNPLANNED, {"failed", "progressing"}),
        (REFUSED, {"terminal", "failed", "progressing"}),
        (TWICE, {"terminal", "failed", "progressing"}),
        (UNREACHABLE, {"terminal", "failed", "progressing", "never"}),
        (CRASHED, {"terminal", "failed", "progressing", "never"}),
        ({}, {"terminal", "failed", "progressing", "never"}),
    ],
)
def test_what_fails_a_plan(result: Any, failing: set[str]) -> None:
    every = ("terminal", "failed", "progressing", "never")
    assert {fail_on for fail_on in every if report.verdict(result, fail_on)} == failing


def test_the_verdict_names_every_failure() -> None:
    told = plan("PROGRESSING", refused("sysctl", "kernel.core_pattern is refused"), WAITING["units"][0])
    assert report.verdict(told, "failed") == "sysctl: kernel.core_pattern is refused"
    assert report.verdict(told, "progressing") == f"sysctl: kernel.core_pattern is refused; {REBOOT}"
    assert report.verdict(plan("FAILED", *(stuck(name, "garbage", False) for name in "abc")), "failed") == (
        "a, b, c: garbage"
    )
    assert report.verdict(TWICE, "terminal") == "the unit cpu is named twice"


def test_an_unknown_fail_on_is_an_error() -> None:
    with pytest.raises(ValueError, match="'always' is not known: take terminal, failed, progressing, never"):
        report.verdict(DRIFTED, "always")


# -- devices

HELD = {"allocation_id": "alloc_1", "binding": "BINDING_HOLD", "devices": ["GPU-a"], "generation": 3}


def with_devices(planned: dict[str, Any], result: Any) -> dict[str, Any]:
    """The document's host."""
    host: dict[str, Any] = report.fleet_document({"a": planned}, {"a": result})["hosts"]["a"]
    return host


def test_the_section_of_devices_is_the_last_unit_of_its_host() -> None:
    result = holds("progressing", steps=[WRITE], kept=["alloc_1"], bound=["alloc_2"], holds=[HELD])
    host = with_devices(plan("CONVERGED", unit("sysctl")), result)
    assert [each["unit"] for each in host["units"]] == ["sysctl", "devices"]
    assert (host["state"], host["drift"], host["failing"], host["unconverged"]) == (
        "progressing",
        ["devices"],
        [],
        ["devices"],
    )
    assert host["devices"] == {
        "bound": ["alloc_2"],
        "kept": ["alloc_1"],
        "released": [],
        "releasing": [],
        "failures": [],
        "holds": [HELD],
    }
    assert host["message"] == "devices: still to do: write /etc/sysctl.d/90-bcd.conf"


@pytest.mark.parametrize("result", [{}, None, {"changed": False, "skipped": True}, {"failed": True, "msg": "no"}])
def test_a_host_without_assignments_has_none(result: Any) -> None:
    assert with_devices(DRIFTED, result) == report.fleet_document({"a": DRIFTED})["hosts"]["a"]


@pytest.mark.parametrize(
    ("planned", "devices", "state"),
    [
        (plan("CONVERGED"), holds("converged"), "converged"),
        (plan("CONVERGED"), holds("failed", ("alloc_2", "taken")), "failed"),
        (REFUSED, holds("failed", ("alloc_2", "taken")), "failed"),
        (REFUSED, holds("converged"), "failed"),
        (DRIFTED, holds("failed", ("alloc_2", "taken")), "progressing"),
        (UNREACHABLE, holds("converged"), "unreachable"),
    ],
)
def test_the_host_s_state_is_of_both_sections(planned: dict[str, Any], devices: dict[str, Any], state: str) -> None:
    assert with_devices(planned, devices)["state"] == state


def test_an_assignment_that_failed_is_a_failing_unit() -> None:
    host = with_devices(plan("CONVERGED"), holds("failed", ("alloc_2", "taken"), message="alloc_2: taken"))
    assert (host["failing"], host["message"]) == (["devices"], "devices: alloc_2: taken")
    assert {key: host["units"][-1][key] for key in ("reason", "retryable", "msg")} == {
        "reason": "AssignmentFailed",
        "retryable": False,
        "msg": "alloc_2: taken",
    }


def test_what_makes_the_plan_of_holds_fail() -> None:
    failed = holds("failed", ("alloc_2", "taken"))
    waiting = holds("progressing", pending=waits("NotReady", "no driver yet"))
    stuck = holds("progressing", message="disk full", reason="StepFailed", retryable=True)
    told = {
        fail_on: [report.verdict(result, fail_on) for result in (holds("converged"), failed, waiting, stuck)]
        for fail_on in ("terminal", "failed", "progressing", "never")
    }
    assert told == {
        "terminal": ["", "devices: alloc_2: taken", "", ""],
        "failed": ["", "devices: alloc_2: taken", "", "devices: disk full"],
        "progressing": ["", "devices: alloc_2: taken", "devices: no driver yet", "devices: disk full"],
        "never": ["", "", "", ""],
    }
