# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a host is: true now, by a plan of what it was asked last, and by what it shows; changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import (
    holds,
    repairs,
    section,
    status,
    through_helper,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import MEMORY, RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.config import OUTSIDE
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG, SOCKET
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.release import VERSION
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.status_text import COLUMNS
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.gpu.fake import GpuHost
from tests.pki import ControlPlane
from tests.unit.fake_host import FakeHost
from tests.unit.hold_host import assign, hold_host, part, uuids
from tests.unit.shelf import Shelf

STATE = "/var/lib/bcd-hostconfig"
KEYS = {
    "changed", "state", "kept", "hostname", "version", "root", "units", "section", "devices", "reboot", "gpus", "holds",
    "numa", "kernel", "driver", "trust", "agent", "unreadable", "report",
}  # fmt: skip
UNIT_KEYS = {"unit", "state", "pending", "conditions", "steps", "notes"}
REBOOT = "cpu: CPUs 1 are isolated from the next boot: reboot the node"
SECTION = (
    "units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label",
)  # fmt: skip
HOLDS = (
    "assignments", "generation", "passthrough", "instances", "max_cdi_version", "slot_count", "acknowledge",
    "signing_key", "node_id", "signed_spec",
)  # fmt: skip


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """A host whose unit sysctl keeps a file, and whose unit cpu waits for a reboot behind its file."""
    shelf = Shelf()
    shelf.keeper("sysctl")
    shelf.keeper("cpu", reboot=REBOOT)
    monkeypatch.setattr(catalog, "SHIPPED", {name: lambda name=name: shelf.units[name] for name in shelf.units})
    bare = FakeHost({"/proc/sys/kernel/hostname": "gpu-1\n", "/proc/sys/kernel/osrelease": "6.12.48\n"})
    monkeypatch.setattr(machine, "Host", lambda: bare)
    return bare


def converge(host: Host, **given: Any) -> None:
    params = {
        **dict.fromkeys(SECTION), "max_disruption": "gpu", "fail_on": "failed", "fail_on_secrets": False, **given
    }  # fmt: skip
    ended = section.converge_section(params, host, Records(host))
    assert ended.fault is None, ended.fault


def hold(host: Host, *assignments: Mapping[str, Any]) -> None:
    params = {**dict.fromkeys(HOLDS), "max_disruption": "gpu", "assignments": list(assignments), "generation": 3}
    result = holds.report(holds.converge_holds(params, host, Records(host)))
    assert result["section"]["state"] == "CONVERGED", result


def told(host: FakeHost) -> dict[str, Any]:
    """The status, after which the host is as it was; its report fits a screen and can be printed."""
    files, calls = dict(host.files), len(host.calls)
    result = status.status_result()
    assert (host.files, len(host.calls), set(result)) == (files, calls, KEYS)
    assert max(map(len, result["report"])) <= COLUMNS, result["report"]
    assert status.status_text(result) == "\n".join(result["report"]) + "\n"
    json.dumps(result)
    return result


def test_a_host_that_was_asked_nothing(host: FakeHost) -> None:
    result = told(host)
    assert (result["changed"], result["state"], result["hostname"]) == (False, "converged", "gpu-1")
    assert (result["version"], result["root"]) == (VERSION, True)
    assert (result["units"], result["section"], result["devices"], result["gpus"]) == ([], None, None, [])
    assert result["reboot"] == {"required": False, "reasons": {}}
    assert result["trust"] == {
        "signed": False,
        "demand": "",
        "pins": {"command_roots": 0, "join_key": False},
        "node_id": None,
        "binding": None,
        "generation": None,
        "trust_bundle": None,
        "fault": None,
    }
    assert (result["agent"], result["unreadable"]) == ({"last": None, "repairs": [], "fault": None}, [])


def test_units_as_they_are_now_and_not_as_they_were(host: FakeHost) -> None:
    converge(host, units={"sysctl": {"text": "x"}, "cpu": {"text": "y"}}, generation=7)
    result = told(host)
    assert [(unit["unit"], unit["state"]) for unit in result["units"]] == [
        ("sysctl", "converged"),
        ("cpu", "progressing"),
    ]
    assert all(set(unit) == UNIT_KEYS for unit in result["units"])
    assert result["units"][1]["pending"] == [{"reason": "RebootRequired", "message": REBOOT}]
    assert (result["state"], result["section"]["state"]) == ("progressing", "PROGRESSING")
    assert result["reboot"] == {"required": True, "reasons": {"cpu": REBOOT}}
    assert "  cpu     progressing" in result["report"]
    assert "      waits, RebootRequired: CPUs 1 are isolated from the next boot: reboot the node" in result["report"]

    kept = next(path for path, file in host.files.items() if file.text == "x")
    host.put(kept, "by hand")
    drifted = told(host)["units"][0]
    assert (drifted["unit"], drifted["state"]) == ("sysctl", "progressing")
    assert [step["done"] for step in drifted["steps"]] == [False]


def test_a_host_that_is_managed_by_others(host: FakeHost) -> None:
    converge(host, units={"sysctl": {"text": "x"}})
    host.put(CONFIG, "[host]\nunits = false\n")
    result = told(host)
    assert (result["state"], result["kept"], result["units"]) == ("converged", OUTSIDE, [])


@pytest.mark.parametrize("path", [CONFIG, f"{STATE}/applied.json"])
def test_what_cannot_be_made_out_is_said(host: FakeHost, path: str) -> None:
    converge(host, units={"sysctl": {"text": "x"}})
    host.put(path, "{")
    result = told(host)
    assert result["state"] in ("failed", "unknown")
    assert path in result["kept"]
    said = "nothing demands a signed spec" in "\n".join(result["report"])
    assert said == (path != CONFIG), "with such a configuration that is not known"


def test_a_signed_host(host: FakeHost) -> None:
    plane = ControlPlane()
    host.put(CONFIG, plane.config(join=True))
    host.put(RECORD, json.dumps(plane.join_response("node-1", 2, [plane.root])))
    empty = told(host)
    assert (empty["units"], "signed spec alone" in empty["kept"]) == ([], True)
    spec = plane.desired_state("node-1", 4, {"sysctl": {"text": "x"}})
    converge(host, signed_spec=spec)
    assert host.text(MEMORY) is not None
    result = told(host)
    assert [(unit["unit"], unit["state"]) for unit in result["units"]] == [("sysctl", "converged")]
    assert result["kept"] == "the signed spec of generation 4"
    assert result["trust"] == {
        "signed": True,
        "demand": "command_root_sha256 in root's config.toml demands a signed spec",
        "pins": {"command_roots": 1, "join_key": True},
        "node_id": "node-1",
        "binding": "join record",
        "generation": 4,
        "trust_bundle": None,
        "fault": None,
    }
    # Joined again as another node: the binding has moved, and generations begin anew.
    host.put(RECORD, json.dumps(plane.join_response("node-2", 2, [plane.root])))
    moved = told(host)
    assert (moved["trust"]["node_id"], moved["trust"]["generation"]) == ("node-2", None)
    assert (moved["state"], moved["units"]) == ("failed", [])
    assert "the signed spec is for the node node-1, and this host is node-2" in moved["section"]["message"]
    assert "node-2" in "\n".join(moved["report"])


def test_without_a_record_the_first_accepted_spec_names_the_node(host: FakeHost) -> None:
    plane = ControlPlane()
    host.put(CONFIG, plane.config(roots=(), join=True))
    bundle = plane.trust_bundle(5, [plane.root])
    converge(host, signed_spec=plane.desired_state("node-1", 1, {"sysctl": {"text": "x"}}, bundle=bundle))
    trust = told(host)["trust"]
    assert (trust["binding"], trust["node_id"], trust["trust_bundle"]) == ("first accepted spec", "node-1", 5)
    assert trust["demand"] == "trust bundle 5, which this host accepted, has roots and demands a signed spec"
    # Under another key that is pinned, its versions say nothing.
    host.put(CONFIG, ControlPlane().config(roots=(), join=True))
    moved = told(host)["trust"]
    assert (moved["trust_bundle"], moved["demand"]) == (
        None,
        "join_signing_key_pin in root's config.toml demands a signed spec",
    )


@pytest.mark.parametrize(
    ("states", "worst"),
    [
        (("PROGRESSING", "FAILED"), "failed"),
        (("FAILED", "CONVERGED"), "failed"),
        (("CONVERGED", "PROGRESSING"), "progressing"),
        (("CONVERGED", "CONVERGED"), "converged"),
        ((), "converged"),
    ],
)
def test_the_worse_of_units_and_devices_is_the_state_of_the_host(states: tuple[str, ...], worst: str) -> None:
    assert status._worst([{"state": state} for state in states]) == worst


def test_what_the_agent_repaired(host: FakeHost) -> None:
    done = [repairs.Repair("sysctl", "write /etc/sysctl.d/90-bcd.conf")]
    repairs.remember(host, "host", "PROGRESSING", REBOOT, done)
    result = told(host)
    assert result["agent"]["last"]["host"] == {"state": "PROGRESSING", "message": REBOOT}
    assert [repair["action"] for repair in result["agent"]["repairs"]] == ["write /etc/sysctl.d/90-bcd.conf"]
    assert "  repaired: sysctl: write /etc/sysctl.d/90-bcd.conf" in result["report"]


# -- other accounts


def test_another_account_sees_what_it_may(host: FakeHost) -> None:
    converge(host, units={"sysctl": {"text": "x"}})
    host.put(CONFIG, "")
    host.user = 1000
    host.unreadable |= {path for path in host.files if path.startswith((STATE, CONFIG))}
    result = told(host)
    assert (result["state"], result["root"], result["units"], result["trust"]) == ("unknown", False, None, None)
    assert {"units: it is seen as root", "trust: it is seen as root"} <= set(result["unreadable"])
    assert result["hostname"] == "gpu-1"


def test_through_the_helper_it_is_roots_view(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.user = 1000
    host.put(SOCKET, "")
    asked: list[str] = []

    def ask(op: str) -> dict[str, Any]:
        asked.append(op)
        return {"changed": False}

    monkeypatch.setattr(through_helper, "asked_of_helper", ask)
    assert (status.status_result(), asked) == ({"changed": False}, ["host.status"])


def test_a_helper_that_does_not_answer_is_said(host: FakeHost) -> None:
    host.user = 1000
    host.put(SOCKET, "")
    assert any(sentence.startswith("as root: ") for sentence in told(host)["unreadable"])


# -- GPUs


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    """An H100 in two MIG devices, one of them held; an L40S of which two slots are; and one that nobody has."""
    host = hold_host("H100-80GB", "L40S", "L40S")
    host.put("/proc/sys/kernel/hostname", "gpu-1\n")
    first, _second = part(host, 0, "3g.40gb", "1g.10gb")
    shared = uuids(host)[1]
    hold(host, assign("a1", first), assign("b1", f"{shared}/s3"), assign("b2", f"{shared}/s11"))
    host.machine.occupy(1, 4242, "python3")
    host.sync()
    monkeypatch.setattr(machine, "Host", lambda: host)
    return host


def test_each_gpu_with_its_parts_and_who_has_them(gpus: GpuHost) -> None:
    result = told(gpus)
    divided, shared, free = result["gpus"]
    assert [(one["gi"], one["profile"], one["allocation_id"]) for one in divided["mig_devices"]] == [
        (gi.id, profile, allocation)
        for gi, profile, allocation in zip(gpus.machine.cards[0].instances, ("3g.40gb", "1g.10gb"), ("a1", None))
    ]
    assert (divided["mig_mode"], divided["layout"], divided["slots"]) == ("enabled", "3g.40gb,1g.10gb", [])
    assert shared["slots"] == [{"slot": 3, "allocation_id": "b1"}, {"slot": 11, "allocation_id": "b2"}]
    assert (shared["allocations"], free["allocations"], free["slots"]) == (["b1", "b2"], [], [])
    assert [(one["allocation_id"], one["releasing"]) for one in result["holds"]] == [
        ("a1", False),
        ("b1", False),
        ("b2", False),
    ]
    assert shared["processes"] == [{"pid": 4242, "name": "python3"}]
    report = result["report"]
    at = report.index("GPUs") + 1
    first, second = (f"gi{one['gi']}/ci{one['ci']}" for one in divided["mig_devices"])
    assert report[at : at + 9] == [
        f"  0  NVIDIA H100 80GB HBM3  {divided['uuid']}  MIG 3g.40gb,1g.10gb",
        f"      {first}  3g.40gb  a1",
        f"      {second}  1g.10gb  free",
        "      held by a1",
        f"  1  NVIDIA L40S            {shared['uuid']}",
        "      s3   b1",
        "      s11  b2",
        "      held by b1, b2",
        "      computing: python3 (4242)",
    ]


def test_a_hold_that_drifted_and_a_release_that_waits(gpus: GpuHost) -> None:
    entry = {"devices": [{"id": uuids(gpus)[2]}], "generation": 2, "since": 1, "asked": gpus.time()}
    gpus.put(f"{STATE}/releasing.json", json.dumps({"version": 1, "releases": {"k1": entry}}))
    result = told(gpus)
    assert [one["allocation_id"] for one in result["holds"] if one["releasing"]] == ["k1"]
    assert result["gpus"][2]["allocations"] == ["k1"]


def test_a_name_that_would_steer_the_terminal(host: FakeHost) -> None:
    host.put("/proc/sys/kernel/hostname", "gpu\x1b[2J\n")
    assert told(host)["report"][0].startswith("gpu\\x1b[2J: ")
