# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a fleet by the real playbooks plan and status: GPUs in parts, holds, pages, a host that is down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.sim.report_fleet import Fleet

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "fleet-report.schema.json"


def state_of(hosts: Fleet) -> dict[str, list[str]]:
    """What was changed on each host since it was made."""
    return {name: host.changes() for name, host in hosts.hosts.items()}


def counted(document: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Of each pool how many hosts it has, and how many are converged, unreachable and drifted."""
    keys = ("hosts", "converged", "unreachable", "drifted")
    return {name: tuple(pool[key] for key in keys) for name, pool in document["summary"]["pools"].items()}


def stats_of(played: Any) -> dict[str, Any]:
    """The statistics of the run, as AWX takes them."""
    found: dict[str, Any] = played.events()["custom"]["_run"]
    return found


def failures_of(played: Any) -> dict[str, int]:
    """By host how many tasks failed, those that were ignored not among them."""
    return {name: stats["failures"] for name, stats in played.events()["stats"].items()}


@pytest.mark.newest_core  # what GPUs show is not Ansible's doing
def test_plan_and_status_report_what_every_host_shows(tmp_path: Path) -> None:
    hosts = Fleet(tmp_path / "fleet")
    hosts.prepare()
    before = state_of(hosts)
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    folder = hosts.scratch / "bcd-report"

    planned = hosts.play("plan")
    plan = hosts.document()
    schema.validate(plan)
    asked = hosts.play("status")
    status = hosts.document()
    schema.validate(status)
    assert state_of(hosts) == before
    assert (plan["source"], status["source"]) == ("plan", "status")

    # Who could not be reached fails, who is refused by a plan does too; the rest is reported as it is.
    assert [failures_of(played) for played in (planned, asked)] == [
        {"down-01": 1, "mig-01": 0, "mps-01": 0, "odd-01": 1, "vm-01": 0},
        {"down-01": 1, "mig-01": 0, "mps-01": 0, "odd-01": 0, "vm-01": 0},
    ]
    assert {name: host["state"] for name, host in plan["hosts"].items()} == {
        "down-01": "unreachable",
        "mig-01": "progressing",
        "mps-01": "converged",
        "odd-01": "failed",
        "vm-01": "progressing",
    }
    assert {name: host["state"] for name, host in status["hosts"].items()} == {
        "down-01": "unreachable",
        "mig-01": "converged",  # a layout that it is still to be asked is the inventory's
        "mps-01": "converged",
        "odd-01": "converged",
        "vm-01": "progressing",
    }
    assert counted(plan) == {"gpu-fra": (2, 1, 0, 1), "sandbox-ber": (2, 0, 1, 1)}
    assert counted(status) == {"gpu-fra": (2, 2, 0, 0), "sandbox-ber": (2, 0, 1, 1)}
    assert [plan["hosts"]["vm-01"][key] for key in ("pool", "site", "class")] == ["sandbox-ber", "ber", "vps-host"]
    assert [plan["hosts"]["odd-01"][key] for key in ("pool", "site", "class")] == [None, None, None]

    # What the hosts show is the same, whichever of both asked.
    for name in ("mig-01", "mps-01", "vm-01", "down-01"):
        for key in ("gpus", "holds", "numa", "kernel", "driver", "reboot", "unreadable"):
            assert plan["hosts"][name][key] == status["hosts"][name][key], (name, key)
    _shows_parts(status["hosts"]["mig-01"], hosts.uuids("mig"))
    _shows_slots(status["hosts"]["mps-01"])
    pools = [node["hugepages"]["2Mi"]["total"] for node in status["hosts"]["vm-01"]["numa"]]
    assert (pools, status["hosts"]["vm-01"]["gpus"], status["hosts"]["vm-01"]["driver"]) == ([64, 64], [], None)
    assert list(status["hosts"]["vm-01"]["reboot"]["reasons"]) == ["cpu"]
    assert (status["hosts"]["down-01"]["gpus"], "is down" in status["hosts"]["down-01"]["message"]) == (None, True)
    assert status["hosts"]["mig-01"]["trust"]["signed"] is False

    # The files, and what a workflow is told.
    assert sorted(path.name for path in (folder / "hosts").iterdir()) == [f"{name}.json" for name in plan["hosts"]]
    runs = sorted(path.name.partition("-")[2] for path in (folder / "history").iterdir())
    assert runs == ["plan.json", "status.json"]
    assert (folder / "fleet.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    for played, document in ((planned, plan), (asked, status)):
        told = stats_of(played)
        assert (told["bcd_report"], told["bcd_fleet_summary"]) == (str(folder / "fleet.html"), document["summary"])
        assert list(told["bcd_converge_reboot_required"]["vm-01"]) == ["cpu"]
        assert len(json.dumps(told)) < 5000, "no dump of facts reaches the next job"


def _shows_parts(host: dict[str, Any], uuids: list[str]) -> None:
    """The MIG host: seven of the H100's eight units of memory are in parts of the layout, and one part is held."""
    assert [gpu["uuid"] for gpu in host["gpus"]] == uuids
    first, second = host["gpus"]
    assert [(gpu["layout"], gpu["slices"]) for gpu in (first, second)] == [("3g.40gb,2g.20gb,1g.10gb:2", 8)] * 2
    assert sorted(part["profile"] for part in first["mig_devices"]) == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    held = [part["allocation_id"] for part in first["mig_devices"] if part["allocation_id"]]
    assert (held, first["allocations"], second["allocations"]) == (["alloc_mig"], ["alloc_mig"], [])
    assert [(hold["allocation_id"], hold["generation"]) for hold in host["holds"]] == [("alloc_mig", 7)]
    assert host["driver"].startswith("580.")


def _shows_slots(host: dict[str, Any]) -> None:
    first, second = host["gpus"]
    assert [gpu["sharing"] for gpu in (first, second)] == [{"mode": "mps", "replicas": 4}] * 2
    assert first["slots"] == [{"slot": 0, "allocation_id": "alloc_0"}, {"slot": 2, "allocation_id": "alloc_1"}]
    assert (second["slots"], [one["pid"] for one in second["processes"]]) == ([], [4242])


def test_a_host_that_is_down_is_in_the_report_and_in_no_other_s_way(tmp_path: Path) -> None:
    hosts = Fleet(tmp_path / "fleet", "down", "vm")
    hosts.take_down("down")
    for source, state in (("plan", "progressing"), ("status", "converged")):
        played = hosts.play(source)
        document = hosts.document()
        assert {name: host["state"] for name, host in document["hosts"].items()} == {
            "down-01": "unreachable",
            "vm-01": state,
        }
        assert failures_of(played) == {"down-01": 1, "vm-01": 0}, played.out
        assert (document["source"], counted(document)["sandbox-ber"][2]) == (source, 1)
        told = stats_of(played)
        assert told["bcd_fleet_summary"] == document["summary"]
        assert told["bcd_report"] == str(hosts.scratch / "bcd-report" / "fleet.html")
        assert "vm-01" in told["bcd_converge_reboot_required"]


@pytest.mark.newest_core
def test_a_status_needs_no_folder_and_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    hosts = Fleet(tmp_path / "fleet", "odd")
    asked = hosts.play("status", "-e", "bcd_report_dir=")
    assert asked.rc == 0, asked.out
    assert not (hosts.scratch / "bcd-report").exists()
    assert (stats_of(asked)["bcd_report"], stats_of(asked)["bcd_fleet_summary"]["converged"]) == (None, 1)
    (hosts.scratch / "taken").write_text("a file", encoding="utf-8")
    failed = hosts.play("status", "-e", "bcd_report_dir=taken")
    assert failed.rc != 0
    assert failed.out.count("give another directory as bcd_report_dir") == 1, "a sentence is said once"
    assert "odd-01: converged" in failed.out, "the hosts have said how they are"


@pytest.mark.newest_core
def test_the_history_keeps_as_many_runs_as_it_is_told(tmp_path: Path) -> None:
    hosts = Fleet(tmp_path / "fleet", "odd")
    history = hosts.scratch / "bcd-report" / "history"
    history.mkdir(parents=True)
    for day in range(1, 6):
        (history / f"2025010{day}T000000Z-plan.json").write_text("{}", encoding="utf-8")
    assert hosts.play("status", "-e", "bcd_report_keep=3").rc == 0
    kept = sorted(path.name for path in history.iterdir())
    assert kept[:2] == ["20250104T000000Z-plan.json", "20250105T000000Z-plan.json"]
    assert (len(kept), kept[2].endswith("-status.json")) == (3, True)
    assert hosts.play("status", "-e", "bcd_report_keep=-1").rc != 0
