# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with GPUs, from no driver to containers, by the real playbook on simulated machines."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

pytestmark = pytest.mark.newest_core  # what GPUs show is not Ansible's doing
DRIVER: dict[str, Any] = {"nvidia-driver": {"branch": "580"}}
LAYOUT = {"layout": "3g.40gb,2g.20gb,1g.10gb:2"}
WHOLE: dict[str, Any] = {
    **DRIVER,
    "fabric-manager": {},
    "gpu-settings": {"powerLimitWatts": 500},
    "mig-layout": LAYOUT,
    "container-toolkit": {},
}
SPEC = "/etc/cdi/nvidia.json"
# Where the simulator writes, and the nodes that it lends to each program.
QUIET = "/run/bcd-hostconfig"  # what quiet turns asked, which is no change of the host
OWN = (
    "/var/log/sim",
    "/.sim",
    QUIET,
    *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")),
)
NEW = "nvidia-driver fabric-manager gpu-settings mig-layout gpu-sharing container-toolkit".split()


class Fleet:
    """Hosts by name, each of a profile and with a section."""

    def __init__(self, scratch: Path, hosts: dict[str, tuple[str, dict[str, Any]]]) -> None:
        self.scratch = scratch
        kinds = [fleet.Hosts(name, PROFILES[profile]) for name, (profile, _section) in hosts.items()]
        variables = {f"{name}-01": {"bcd_converge_units": section} for name, (_profile, section) in hosts.items()}
        self.inventory = fleet.make(str(scratch), kinds, hostvars=variables)

    def host(self, name: str) -> SimulatedHost:
        """One of them."""
        return SimulatedHost(str(self.scratch / "trees" / f"{name}-01"))

    def converge(self, *arguments: str, **sections: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """A pass that succeeds everywhere; the whole-host result by name. `sections` replace a host's own."""
        for name, section in sections.items():
            inventory = json.loads(Path(self.inventory).read_text(encoding="utf-8"))
            inventory["all"]["children"][name]["hosts"][f"{name}-01"]["bcd_converge_units"] = section
            Path(self.inventory).write_text(json.dumps(inventory), encoding="utf-8")
        played = controller.playbook(
            str(self.scratch), self.inventory, "bettercompute.bcd.converge", *arguments, as_json=True
        )
        tasks = played.events()["tasks"]
        assert played.rc == 0, [task["result"].get("msg") for task in tasks if task["status"] != "ok"]
        found = {}
        for task in tasks:
            if "units" in task["result"]:
                units = {unit["unit"]: unit for unit in task["result"]["units"]}
                found[task["host"][: -len("-01")]] = {**task["result"], "units": units}
        return found


Maker = Callable[..., Fleet]


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Makes a fleet: make(bare=("h100-bare", section))."""
    return lambda **hosts: Fleet(tmp_path / "fleet", hosts)


def digest(host: SimulatedHost) -> dict[str, str]:
    """Every file of the tree, but for the simulator's journals."""
    found = {}
    for folder, _unused, files in os.walk(host.tree):
        for name in files:
            path = os.path.join(folder, name)
            inside = path[len(host.tree) :]
            if not inside.startswith(OWN) and not os.path.islink(path):
                content = Path(path).read_bytes()
                found[inside] = f"{os.lstat(path).st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


def steps(result: dict[str, Any]) -> dict[str, list[str]]:
    """The sentences of each unit's steps, by unit and in order."""
    return {name: [step["action"] for step in unit["steps"]] for name, unit in result["units"].items()}


def states(result: dict[str, Any]) -> dict[str, str]:
    return {name: unit["state"] for name, unit in result["units"].items()}


def is_taken(planned: list[str], taken: list[str]) -> bool:
    """Whether the steps taken are those planned, in order, up to the first that was not known yet."""
    known = [step for step in planned if ": known after " not in step]
    return taken[: len(known)] == known if len(known) < len(planned) else taken == known


def devices(host: SimulatedHost) -> set[str]:
    """The devices that the vendor's specification names, without `all`."""
    spec = json.loads(host.read(SPEC) or "{}")
    return {device["name"] for device in spec.get("devices", ())} - {"all"}


def listed(host: SimulatedHost) -> set[str]:
    """The MIG devices that nvidia-smi lists."""
    return set(re.findall(r"UUID: (MIG-[^)]+)\)", host.run("nvidia-smi", "-L").stdout))


def test_a_board_from_no_driver_to_a_new_layout(make: Maker) -> None:
    hosts = make(bare=("h100-bare", WHOLE))
    host = hosts.host("bare")
    before = digest(host)

    # On paper: every unit in order, and what no one can know before the driver runs is said to be so.
    planned = hosts.converge("--check")["bare"]
    assert digest(host) == before
    assert list(planned["units"]) == [name for name in NEW if name in WHOLE]
    on_paper = steps(planned)
    after = "known after the driver is installed and loaded"
    assert on_paper["nvidia-driver"][3].startswith(
        "install nvidia-headless-580-server-open 580.105.08-0ubuntu0.24.04.1"
    )
    assert on_paper["nvidia-driver"][4:6] == ["load the module nvidia", "load the module nvidia_uvm"]
    for name in ("fabric-manager", "gpu-settings", "mig-layout"):
        assert on_paper[name] == [f"{name}: {after}"]
    assert f"{SPEC}: {after}" in on_paper["container-toolkit"]

    # The pass, the whole of it in one go.
    first = hosts.converge()["bare"]
    assert states(first) == dict.fromkeys(WHOLE, "converged")
    with host.gpus() as gpus:
        assert [card.power for card in gpus.cards] == [500, 500]
        assert [gpus.instances(index) for index in (0, 1)] == [["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]] * 2
        assert [card.fabric for card in gpus.cards] == ["Completed", "Completed"]
    assert devices(host) == listed(host)
    assert len(listed(host)) == 8
    # What others had set of containerd is still in force, and ours is.
    dump = host.run("containerd", "config", "dump").stdout
    for key in ('config_path = "/etc/containerd/certs.d"', "SystemdCgroup = true", "enable_cdi = true"):
        assert key in dump
    host.forget_calls()
    assert hosts.converge()["bare"]["changed"] is False
    assert host.changes() == []

    # A reboot takes the instances, Hopper's mode and the limits: the boot service makes the first two again.
    host.reboot()
    assert listed(host) == devices(host)
    booted = hosts.converge()["bare"]
    assert steps(booted) == {
        **{name: [] for name in WHOLE},
        "gpu-settings": ["set the power limit of GPU 0 to 500 W", "set the power limit of GPU 1 to 500 W"],
    }

    # A new layout: its devices are described in the same pass. What was planned is what is done.
    fresh = {**WHOLE, "mig-layout": {"layout": "7g.80gb"}}
    planned = hosts.converge("--check", bare=fresh)["bare"]
    taken = hosts.converge()["bare"]
    assert states(taken) == dict.fromkeys(WHOLE, "converged")
    assert len(listed(host)) == 2
    assert devices(host) == listed(host)
    for name in WHOLE:
        assert is_taken(steps(planned)[name], steps(taken)[name]), (name, steps(planned)[name], steps(taken)[name])
    assert steps(taken)["container-toolkit"][0].startswith("describe 2 devices")


def test_a_busy_gpu_is_left_alone_and_finished_later(make: Maker) -> None:
    section = {**DRIVER, "mig-layout": {"layout": "all-1g.5gb"}, "container-toolkit": {}}
    hosts = make(a100=("a100", section))
    host = hosts.host("a100")
    with host.gpus() as gpus:
        gpus.occupy(0, pid=4242, name="train")
        busy = gpus.cards[0].uuid

    first = hosts.converge()["a100"]
    assert states(first) == {
        "nvidia-driver": "converged",
        "mig-layout": "progressing",
        "container-toolkit": "converged",
    }
    [wait] = first["units"]["mig-layout"]["pending"]
    assert wait["reason"] == "Busy"
    assert busy in wait["message"]
    assert "4242 (train)" in wait["message"]
    with host.gpus() as gpus:
        assert (gpus.cards[0].mig, gpus.cards[0].mig_pending, gpus.instances(0)) == (False, False, [])
        assert [process.pid for process in gpus.cards[0].processes] == [4242]
        assert gpus.instances(1) == ["1g.5gb"] * 7
    assert devices(host) == {busy, *listed(host)}
    # What was stopped for the reset runs again.
    assert host.run("systemctl", "is-active", "nvidia-persistenced").stdout == "active\n"

    host.forget_calls()
    again = hosts.converge()["a100"]
    assert (again["changed"], again["units"]["mig-layout"]["pending"]) == (False, [wait])
    assert host.changes() == []

    with host.gpus() as gpus:
        gpus.free(0)
    last = hosts.converge()["a100"]
    assert states(last) == dict.fromkeys(section, "converged")
    with host.gpus() as gpus:
        assert [gpus.instances(index) for index in (0, 1)] == [["1g.5gb"] * 7] * 2
    assert devices(host) == listed(host)


def test_sharing_switches_and_another_distribution(make: Maker) -> None:
    shared = {**DRIVER, "gpu-sharing": {"mode": "mps", "replicas": 4}, "container-toolkit": {}}
    switched = {**DRIVER, "fabric-manager": {}, "gpu-settings": {"ecc": False}}
    bare = {**DRIVER, "mig-layout": LAYOUT, "container-toolkit": {"runtimes": ["podman"]}}
    hosts = make(rtx=("rtx", shared), nvswitch=("nvswitch", switched), el9=("h100-el9", bare))

    planned = hosts.converge("--check")
    first = hosts.converge()
    for name in ("rtx", "nvswitch"):
        for unit, taken in steps(first[name]).items():
            assert is_taken(steps(planned[name])[unit], taken), (name, unit, steps(planned[name])[unit], taken)
    assert states(first["rtx"]) == dict.fromkeys(shared, "converged")
    assert states(first["el9"]) == dict.fromkeys(bare, "converged")
    assert states(first["nvswitch"]) == {**dict.fromkeys(switched, "converged"), "gpu-settings": "progressing"}
    assert first["nvswitch"]["reboot_required"] is True

    # A share of each client: a quarter of the SMs, and of the memory of each GPU.
    with hosts.host("rtx").gpus() as gpus:
        [daemon] = gpus.mps.values()
        assert (daemon["percentage"], daemon["limits"]) == ("25.0", {"0": "11517M", "1": "11517M"})
        assert [card.compute_mode for card in gpus.cards] == ["EXCLUSIVE_PROCESS"] * 2
    assert [words for words in hosts.host("el9").calls("dnf") if "versionlock" in words] == []  # a stream keeps it
    assert ["dnf", "-y", "module", "enable", "nvidia-driver:580-open"] in hosts.host("el9").calls("dnf")

    for name in ("rtx", "nvswitch", "el9"):
        hosts.host(name).forget_calls()
    again = hosts.converge()
    assert {name: result["changed"] for name, result in again.items()} == dict.fromkeys(first, False)
    assert [hosts.host(name).changes() for name in first] == [[]] * 3

    for name in ("rtx", "nvswitch", "el9"):
        hosts.host(name).reboot()
    booted = hosts.converge()
    assert {name: (result["changed"], result["section"]["state"]) for name, result in booted.items()} == dict.fromkeys(
        first, (False, "CONVERGED")
    )
    with hosts.host("nvswitch").gpus() as gpus:
        assert [card.ecc for card in gpus.cards] == [False] * 4
        assert [card.fabric for card in gpus.cards] == ["Completed"] * 4
