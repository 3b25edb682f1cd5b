# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole host in one process: what a pass over a section returns, records and fails by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.unit.fake_host import FakeHost
from tests.unit.shelf import Shelf

APPLIED = "/var/lib/bcd-hostconfig/applied.json"
RESULT = {
    "changed",
    "diff",
    "units",
    "unconverged",
    "todo",
    "secrets_needed",
    "reboot_required",
    "section",
    "ansible_facts",
    "ansible_stats",
}
NEVER = {"rc", "results", "skipped", "warnings", "failed"}


@pytest.fixture(autouse=True)
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """kernel-modules waits for what sysctl writes, cpu for a reboot; the real units of those names stay away."""
    shelf = Shelf()
    shelf.keeper("kernel-modules")
    shelf.keeper("sysctl")
    shelf.keeper("cpu", reboot="cpu: CPUs 1 are isolated from the next boot: reboot the node")
    shelf.keeper("iommu", needs="/sys/never")
    monkeypatch.setattr(catalog, "SHIPPED", {name: lambda name=name: shelf.units[name] for name in shelf.units})
    return shelf


def options(**given: Any) -> dict[str, Any]:
    """The module's options, as Ansible fills them."""
    names = ("units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label")
    return {**dict.fromkeys(names), "max_disruption": "gpu", "fail_on": "failed", **given}


def converge(host: Host, **given: Any) -> dict[str, Any]:
    """The result of a pass."""
    params = options(**given)
    ended = section.converge_section(params, host, Records(host))
    return section.report(ended, params["fail_on"], params["only"])


def of(result: dict[str, Any], unit: str) -> dict[str, Any]:
    (found,) = [entry for entry in result["units"] if entry["unit"] == unit]
    return dict(found)


X = {"text": "x"}


def test_a_first_pass_and_the_next() -> None:
    host = FakeHost()
    first = converge(host, units={"sysctl": X, "kernel-modules": X}, generation=4, label="node-1")
    assert set(first) == RESULT | {"inventory"}
    assert first["changed"] is True
    assert [(entry["unit"], entry["state"], entry["changed"]) for entry in first["units"]] == [
        ("kernel-modules", "converged", True),
        ("sysctl", "converged", True),
    ]
    assert [entry["after_header"] for entry in first["diff"]] == ["/etc/kernel-modules", "/etc/sysctl"]
    assert first["section"] == {"state": "CONVERGED", "message": "", "observed_generation": 4, "conditions": []}
    assert (first["unconverged"], first["todo"], first["secrets_needed"], first["reboot_required"]) == (
        [],
        [],
        [],
        False,
    )
    host.calls.clear()
    second = converge(host, units={"sysctl": X, "kernel-modules": X}, generation=4)
    assert set(second) == RESULT
    assert (second["changed"], second["diff"]) == (False, [])
    assert host.calls == []


def test_facts_and_statistics_come_with_the_result() -> None:
    result = converge(FakeHost(), units={"cpu": X, "sysctl": X}, label="node-1")
    status = result["ansible_facts"]["bcd_converge_status"]
    assert status == {key: result[key] for key in result.keys() - {"ansible_facts", "ansible_stats", "diff"}}
    assert result["ansible_stats"] == {
        "data": {
            "bcd_converge_reboot_required": {
                "node-1": {"cpu": "cpu: CPUs 1 are isolated from the next boot: reboot the node"}
            }
        },
        "per_host": False,
        "aggregate": True,
    }
    assert NEVER.isdisjoint(result)


def test_a_failing_result_says_everything_once() -> None:
    """Ansible drops the facts of a failed task, and prints its whole result."""
    result = converge(FakeHost(), units={"sysctl": {"text": "no"}})
    assert set(result) == RESULT - {"ansible_facts"} | {"msg"}


def test_without_a_label_the_host_goes_by_its_own_name() -> None:
    host = FakeHost({"/proc/sys/kernel/hostname": "gpu-7\n"})
    assert converge(host, units={})["ansible_stats"]["data"] == {"bcd_converge_reboot_required": {"gpu-7": {}}}


def test_one_refused_one_waiting_and_the_others_converge() -> None:
    host = FakeHost()
    result = converge(
        host,
        units={"sysctl": {"text": "no"}, "iommu": X, "kernel-modules": X, "cpu": X, "nvidia-driver": {}, "zfs": {}},
    )
    assert {entry["unit"]: entry["state"] for entry in result["units"]} == {
        "kernel-modules": "converged",
        "sysctl": "failed",
        "cpu": "progressing",
        "iommu": "progressing",
        "nvidia-driver": "failed",
        "zfs": "failed",
    }
    assert result["unconverged"] == ["sysctl", "cpu", "iommu", "nvidia-driver", "zfs"]
    assert result["section"]["state"] == "PROGRESSING"
    assert result["msg"] == result["section"]["message"]
    for said in (
        "sysctl: no is refused",
        "cpu: CPUs 1 are isolated from the next boot: reboot the node",
        "iommu: /sys/never is missing",
        "nvidia-driver: this version has no unit nvidia-driver",
        "zfs: there is no unit 'zfs'",
    ):
        assert said in result["msg"]
    assert result["reboot_required"] is True
    assert [(one["type"], one["reason"]) for one in result["section"]["conditions"]] == [("RebootRequired", "cpu")]
    assert (host.text("/etc/kernel-modules"), host.text("/etc/sysctl")) == ("x", None)
    assert {key for key in of(result, "sysctl") if key in ("reason", "retryable", "msg")} == {
        "reason",
        "retryable",
        "msg",
    }


@pytest.mark.parametrize(
    ("units", "failing"),
    [
        ({"sysctl": X}, set()),
        ({"cpu": X}, {"progressing"}),
        ({"sysctl": {"text": "no"}}, {"terminal", "failed", "progressing"}),
        ({"nvidia-driver": {}, "cpu": X}, {"terminal", "failed", "progressing"}),
    ],
)
def test_the_task_fails_by_fail_on(units: dict[str, Any], failing: set[str]) -> None:
    kinds = ("terminal", "failed", "progressing", "never")
    assert {kind for kind in kinds if "msg" in converge(FakeHost(), units=units, fail_on=kind)} == failing


# -- generations


def test_the_observed_generation_moves_when_a_section_ends_and_stays_while_it_goes_on() -> None:
    host = FakeHost()

    def seen(generation: int | None, **units: Any) -> tuple[str, int | None]:
        found = converge(host, units=units, generation=generation, fail_on="never")["section"]
        return found["state"], found["observed_generation"]

    assert seen(1, cpu=X) == ("PROGRESSING", None)
    assert seen(2, sysctl=X) == ("CONVERGED", 2)
    assert seen(3, cpu=X) == ("PROGRESSING", 2)
    assert seen(4, sysctl={"text": "no"}) == ("FAILED", 4)
    assert seen(None, sysctl=X) == ("CONVERGED", 4)
    assert json.loads(host.text(APPLIED) or "")["observed_generation"] == 4


def test_a_prediction_records_nothing() -> None:
    host = FakeHost({"/etc/sysctl": "x"})
    result = converge(PredictedHost(host), units={"sysctl": X}, generation=9)
    assert result["section"]["observed_generation"] == 9
    assert host.calls == []


# -- what left the section


def test_what_left_the_section_is_cleaned_and_forgotten() -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X, "kernel-modules": X})
    result = converge(host, units={"kernel-modules": X})
    assert [(entry["unit"], entry["changed"]) for entry in result["units"]] == [
        ("kernel-modules", False),
        ("sysctl", True),
    ]
    assert host.text("/etc/sysctl") is None
    assert [entry["unit"] for entry in converge(host, units={"kernel-modules": X})["units"]] == ["kernel-modules"]


def test_an_empty_section_cleans_everything_the_last_first() -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X, "kernel-modules": X})
    host.calls.clear()
    result = converge(host, units={})
    assert [call for call in host.calls if "bcd-hostconfig" not in call] == [
        "remove /etc/sysctl",
        "remove /etc/kernel-modules",
    ]
    assert [entry["unit"] for entry in result["units"]] == ["kernel-modules", "sysctl"]
    assert result["section"]["state"] == "CONVERGED"
    assert converge(host, units={})["units"] == []


def test_known_adds_to_a_record_that_was_lost() -> None:
    host = FakeHost({"/etc/sysctl": "x"})
    assert converge(host, units={})["units"] == []
    assert of(converge(host, units={}, known=["sysctl"]), "sysctl")["changed"] is True
    assert host.text("/etc/sysctl") is None


def test_a_unit_that_another_version_applied_cannot_be_cleaned_by_this_one() -> None:
    host = FakeHost()
    Records(host).apply("gpu-sharing", {"mode": "mps"})
    result = converge(host, units={"sysctl": X})
    assert of(result, "gpu-sharing")["state"] == "failed"
    assert of(result, "sysctl")["state"] == "converged"
    assert Records(host).applied().keys() == {"gpu-sharing", "sysctl"}


def test_todo_is_in_the_order_of_the_turns() -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X})
    result = converge(PredictedHost(host), units={"kernel-modules": X, "cpu": X})
    assert result["todo"] == ["sysctl", "kernel-modules", "cpu"]
    assert [entry["unit"] for entry in result["units"]] == ["kernel-modules", "sysctl", "cpu"]


# -- only


def test_only_decides_what_is_applied_and_what_fails_the_task() -> None:
    host = FakeHost()
    units = {"kernel-modules": X, "sysctl": {"text": "no"}, "nvidia-driver": {}}
    result = converge(host, units=units, only=["kernel-modules"], fail_on="progressing")
    assert "msg" not in result
    assert result["section"]["state"] == "FAILED"
    assert result["changed"] is True
    result = converge(host, units=units, only=["sysctl"])
    assert result["msg"] == "sysctl: no is refused"


def test_only_of_a_name_that_no_unit_has_fails_the_whole_section() -> None:
    host = FakeHost()
    result = converge(host, units={"sysctl": X}, only=["sysctll"])
    assert result["msg"].startswith("only: 'sysctll': no unit has that name")
    assert (result["section"]["state"], host.text("/etc/sysctl")) == ("FAILED", None)


# -- faults of the whole section


def test_a_unit_named_twice_fails_the_whole_section_and_nothing_is_written() -> None:
    host = FakeHost()
    twice = [
        {"unit": "sysctl", "settings": '{"text": "x"}'},
        {"unit": "kernel-modules", "settings": '{"text": "x"}'},
        {"unit": "sysctl", "settings": '{"text": "y"}'},
    ]
    result = converge(host, wire_units=twice)
    assert result["section"]["state"] == "FAILED"
    assert result["msg"] == result["section"]["message"]
    assert result["msg"].startswith("the section names sysctl twice")
    assert [(entry["unit"], entry["reason"]) for entry in result["units"]] == [
        ("kernel-modules", "Refused"),
        ("sysctl", "Refused"),
    ]
    assert host.calls == []


def test_settings_that_do_not_decode_fail_their_unit_alone() -> None:
    host = FakeHost()
    result = converge(
        host,
        wire_units=[
            {"unit": "sysctl", "settings": '{"text": "x"} trailing'},
            {"unit": "kernel-modules", "settings": '{"text": "x"}'},
        ],
    )
    assert {entry["unit"]: entry["state"] for entry in result["units"]} == {
        "kernel-modules": "converged",
        "sysctl": "failed",
    }
    assert (host.text("/etc/kernel-modules"), host.text("/etc/sysctl")) == ("x", None)


def test_a_signed_spec_is_not_believed_where_root_pins_no_signer() -> None:
    host = FakeHost({"/etc/sysctl": "x"})
    Records(host).apply("sysctl", X)
    host.calls.clear()
    result = converge(host, signed_spec={"body": "e30="})
    assert result["msg"].startswith("signed_spec is given, and root pins no signer on this host: ")
    assert host.calls == []


def test_an_unreadable_record_fails_the_whole_section() -> None:
    host = FakeHost({APPLIED: "{"})
    result = converge(host, units={"sysctl": X}, generation=3)
    assert APPLIED in result["msg"]
    assert result["section"]["state"] == "FAILED"
    assert result["section"]["observed_generation"] is None
    assert host.calls == []


def test_a_fault_that_another_run_may_help_is_no_end() -> None:
    host = FakeHost({"/etc/sysctl": "x"})
    ended = section._ended(
        (), StepFailed("another pass holds the lock"), options(units={"sysctl": X}, generation=3), host, Records(host)
    )
    for kind, fails in (("terminal", False), ("failed", True), ("never", False)):
        assert ("msg" in section.report(ended, kind)) is fails
    result = section.report(ended, "never")
    assert result["section"]["state"] == "PROGRESSING"
    assert result["section"]["message"] == "another pass holds the lock"
    assert result["unconverged"] == ["sysctl"]
    assert result["section"]["observed_generation"] is None


# -- the catalog


def test_the_real_catalog_has_the_units_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert list(catalog.SHIPPED) == list(ORDER)
    for name in catalog.SHIPPED:
        assert catalog.unit(name).name == name
