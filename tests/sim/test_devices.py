# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds beside the rest of a host: a driver that is still to come, MPS, a layout that would take a held GPU apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

pytestmark = pytest.mark.newest_core  # what ansible-core has to do with holds is in test_role_devices.py

HOLDS = "bettercompute.bcd.bcd_devices : Hold the host's devices"
DRIVER = {"nvidia-driver": {"branch": "580"}}
SHARED: dict[str, Any] = {**DRIVER, "gpu-sharing": {"mode": "mps", "replicas": 4}, "container-toolkit": {}}
OURS = ("/etc/cdi/bcd-", "/run/bcd/", "/var/lib/bcd-hostconfig/")


class Fleet:
    """A host without a driver, one whose GPUs are shared by MPS, and one whose GPUs can be taken apart."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.profiles = {"bare": "h100-bare", "shared": "rtx", "whole": "h100"}
        self.inventory = fleet.make(str(scratch), [fleet.Hosts(*each) for each in self.kinds()])
        self.hosts = {name: SimulatedHost(str(scratch / "trees" / f"{name}-01")) for name in self.profiles}
        self.gpus: dict[str, list[str]] = {}
        for name, host in self.hosts.items():
            with host.gpus() as gpus:
                self.gpus[name] = [card.uuid for card in gpus.cards]

    def kinds(self) -> list[tuple[str, Any]]:
        return [(name, PROFILES[profile]) for name, profile in self.profiles.items()]

    def play(self, *arguments: str, **variables: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
        """A run of converge that succeeds on these hosts: the results by host, then "units" or "devices"."""
        inventory = json.loads(Path(self.inventory).read_text(encoding="utf-8"))
        for name, given in variables.items():
            inventory["all"]["children"][name]["hosts"][f"{name}-01"].update(given)
        Path(self.inventory).write_text(json.dumps(inventory), encoding="utf-8")
        limit = ("--limit", ",".join(variables))
        where, what = str(self.scratch), "bettercompute.bcd.converge"
        played = controller.playbook(where, self.inventory, what, *limit, *arguments, as_json=True)
        assert played.rc == 0, played.out + played.err
        found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in variables}
        for task in played.events()["tasks"]:
            result, host = task["result"], task["host"].rpartition("-")[0]
            if "units" in result:
                found[host]["units"] = {unit["unit"]: unit for unit in result["units"]}
            elif task["task"] == HOLDS:
                found[host]["devices"] = result
        return found


def hold(name: str, *devices: str) -> dict[str, Any]:
    kinds = ["gpu.slot" if "/s" in device else "gpu" for device in devices]
    named = [{"id": device, "device_class": kind} for device, kind in zip(devices, kinds)]
    return {"allocation_id": name, "binding": "BINDING_HOLD", "devices": named}


def moved(result: dict[str, Any]) -> dict[str, list[str]]:
    return {key: result[key] for key in ("bound", "kept", "released") if result[key]}


def test_holds_beside_a_driver_mps_and_a_layout(tmp_path: Path) -> None:
    hosts = Fleet(tmp_path / "fleet")
    bare, shared, whole = (hosts.hosts[name] for name in ("bare", "shared", "whole"))
    one, two = hosts.gpus["whole"]
    slots = [f"{hosts.gpus['shared'][0]}/s{slot}" for slot in (0, 1)]
    wanted = {
        "bare": {"bcd_converge_units": DRIVER, "bcd_devices_assignments": [hold("a1", hosts.gpus["bare"][0])]},
        "shared": {"bcd_converge_units": SHARED, "bcd_devices_assignments": [hold("a1", *slots)]},
        "whole": {
            "bcd_converge_units": {**DRIVER, "container-toolkit": {}},
            "bcd_devices_assignments": [hold("a1", one), hold("a2", two)],
        },
    }

    # On paper: where no driver is yet, nobody can know, and nothing fails.
    planned = hosts.play("--check", "--diff", **wanted)
    assert all(host.changes() == [] for host in (bare, shared, whole))
    assert (planned["bare"]["devices"]["failures"], planned["bare"]["devices"]["bound"]) == ([], [])
    assert planned["bare"]["devices"]["section"]["state"] == "PROGRESSING"

    # The pass: what an MPS client needs is in its hold, from the daemon that the same pass started.
    done = hosts.play(shared=wanted["shared"], whole=wanted["whole"])
    assert moved(done["shared"]["devices"]) == {"bound": ["a1"]}
    assert moved(done["whole"]["devices"]) == {"bound": ["a1", "a2"]}
    spec = json.loads(shared.read("/etc/cdi/bcd-a1.json") or "")
    assert [device["name"] for device in spec["devices"]] == [slot.replace("/", "_") for slot in slots]
    assert "/dev/shm" in [mount["hostPath"] for mount in spec["containerEdits"]["mounts"]]
    assert "CUDA_MPS_PIPE_DIRECTORY=" in (shared.read("/run/bcd/allocations/a1.env") or "")
    nodes = json.loads(whole.read("/etc/cdi/bcd-a2.json") or "")["devices"][0]["containerEdits"]["deviceNodes"]
    assert "/dev/nvidia1" in [node["path"] for node in nodes]

    # Two GPUs change hands in one generation, while a layout for them waits: it names who has them.
    for host in (shared, whole):
        host.forget_calls()
    after = {
        "bcd_converge_units": {**DRIVER, "container-toolkit": {}, "mig-layout": {"layout": "all-1g.10gb"}},
        "bcd_devices_assignments": [hold("b1", two), hold("b2", one)],
        "bcd_devices_generation": 2,
    }
    done = hosts.play(shared=wanted["shared"], whole=after)
    assert (moved(done["shared"]["devices"]), shared.changes()) == ({"kept": ["a1"]}, [])
    (wait,) = done["whole"]["units"]["mig-layout"]["pending"]
    assert wait["reason"] == "Busy"
    for name, gpu in (("a1", one), ("a2", two)):
        assert f"the allocation {name} has {gpu}" in wait["message"]
    assert moved(done["whole"]["devices"]) == {"bound": ["b1", "b2"], "released": ["a1", "a2"]}
    changes = [change for change in whole.changes() if change.split()[1].startswith(OURS)]
    last, first = (
        [at for at, change in enumerate(changes) if change.startswith(start)]
        for start in ("remove /var/lib/bcd-hostconfig/holds/a", "write /etc/cdi/bcd-b")
    )
    assert max(last) < min(first)
