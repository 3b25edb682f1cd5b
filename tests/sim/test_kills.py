# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed at every change of a pass, then a clean pass: converged, and no follow-up is lost.

Real modules through real ansible-playbook. One host of a fleet dies right after each change that a pass makes (records
of our own among them, so that dying before a change is among it too); then a clean pass over the fleet has to bring
every host to where a host is that was never killed, down to the last byte of its tree, what its service manager has
loaded and what its next boot shows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.machine import Machine
from tests.sim.tree import PROFILES, machine

STATE = "/var/lib/bcd-hostconfig"
# Journals of the simulator, what tells one host from another, and what Ansible leaves of a module that was killed.
NOT_COMPARED = (
    "/var/log/sim",
    "/var/lib/sim",
    "/etc/sim/faults.json",
    "/.sim",
    "/etc/hostname",
    "/proc/sys/kernel/hostname",
    "/etc/hosts",
    "/etc/machine-id",
    "/tmp/ansible_",
)
KVM = {"load": ["kvm_intel", "tun"], "options": {"kvm_intel": "nested=1"}}


class Case(NamedTuple):
    """A machine, what was done to it before, and the section that it is to converge to."""

    machine: Machine
    section: dict[str, Any]
    by_hand: tuple[tuple[str, ...], ...] = ()  # programs run in it before
    before: Mapping[str, Any] = MappingProxyType({})  # a section that it was converged to before


SHORT_OF_1G = machine(runtime_1g=1, boot_1g=4)
CASES = {
    "kernel-modules": Case(
        PROFILES["debian"],
        {"kernel-modules": {**KVM, "blacklist": ["nouveau"]}},
        by_hand=(("modprobe", "kvm_intel", "nested=0"),),
    ),
    "kernel-modules with dracut": Case(PROFILES["rocky"], {"kernel-modules": {"blacklist": ["nouveau"]}}),
    "kernel-modules leaves": Case(
        PROFILES["debian"], {}, before={"kernel-modules": {"load": ["tun"], "blacklist": ["nouveau"]}}
    ),
    "kernel-modules with ostree": Case(PROFILES["ostree"], {"kernel-modules": {**KVM, "blacklist": ["nouveau"]}}),
    "kernel-modules leaves ostree": Case(
        PROFILES["ostree"], {}, before={"kernel-modules": {"load": ["tun"], "blacklist": ["nouveau"]}}
    ),
    # An option that the kernel does not show, given to a module that is loaded: idle, and held by another.
    "kernel-modules unseen": Case(
        PROFILES["debian"],
        {"kernel-modules": {"options": {"softdog": "soft_noboot=1"}}},
        by_hand=(("modprobe", "softdog"),),
    ),
    "kernel-modules unseen in use": Case(
        PROFILES["debian"],
        {"kernel-modules": {"options": {"bridge": "unseen=1"}}},
        by_hand=(("modprobe", "br_netfilter"),),
    ),
    # vhost_net stands on tun, which stays.
    "kernel-modules one on the other": Case(
        PROFILES["debian"],
        {"kernel-modules": {"load": ["tun"], "blacklist": ["vhost_net"]}},
        by_hand=(("modprobe", "vhost_net"),),
    ),
    "sysctl": Case(PROFILES["debian"], {"sysctl": {"vm.swappiness": 10, "kernel.sysrq": 0}}),
    "hugepages": Case(PROFILES["debian"], {"hugepages": {"pages2m": 64, "pages1g": 1, "transparent": "never"}}),
    "hugepages from the boot loader": Case(SHORT_OF_1G, {"hugepages": {"pages1g": 2, "perNuma": True}}),
    "hugepages given back": Case(
        SHORT_OF_1G, {"hugepages": {"pages1g": 0}}, before={"hugepages": {"pages1g": 2, "perNuma": True}}
    ),
    "cpu": Case(PROFILES["debian"], {"cpu": {"governor": "performance", "isolate": "4-7"}}),
    "cpu with another list": Case(PROFILES["debian"], {"cpu": {"isolate": "4-7"}}, before={"cpu": {"isolate": "2-3"}}),
    "cpu with grubby": Case(PROFILES["rocky"], {"cpu": {"isolate": "4-7"}}),
    "cpu with systemd-boot": Case(PROFILES["systemd-boot"], {"cpu": {"isolate": "4-7"}}),
    "cpu leaves": Case(PROFILES["debian"], {}, before={"cpu": {"isolate": "4-7"}}),
    "iommu": Case(PROFILES["debian"], {"iommu": {}}),
    "iommu with a unified image": Case(PROFILES["uki"], {"iommu": {}}),
    "iommu with ostree": Case(PROFILES["ostree"], {"iommu": {}}),
    "gpu-sharing": Case(
        PROFILES["rtx"]._replace(gpus=("L40S",), runtimes=()), {"gpu-sharing": {"mode": "mps", "replicas": 2}}
    ),
}


class Fleet:
    """Hosts of one case, each as it was before the pass."""

    def __init__(self, scratch: Path, case: Case, number: int) -> None:
        self.scratch = scratch
        self.section = case.section
        # The first is the one that was built, the others are its copies, which are alike to the last directory.
        self.inventory = fleet.make(str(scratch), [fleet.Hosts("one", case.machine, number + 1)])
        names = sorted(os.listdir(scratch / "trees"))[1:]
        self.hosts = {name: SimulatedHost(str(scratch / "trees" / name)) for name in names}
        for host in self.hosts.values():
            for words in case.by_hand:
                done = host.run(*words)
                assert done.returncode == 0, done.stderr
        if case.before:
            before = self.converge(case.before)
            assert before.rc == 0, reasons(before)
        for host in self.hosts.values():
            host.forget_calls()

    def converge(self, section: Mapping[str, Any] | None = None) -> Played:
        """One pass over all of them by the shipped playbook."""
        units = json.dumps({"bcd_converge_units": dict(self.section if section is None else section)})
        return controller.playbook(
            str(self.scratch), self.inventory, "bettercompute.bcd.converge", "--extra-vars", units, as_json=True
        )


def results(played: Played) -> dict[str, dict[str, Any]]:
    """The whole-host result by host."""
    tasks = played.events()["tasks"]
    return {task["host"]: task["result"] for task in tasks if task["action"].endswith("host_section")}


def reasons(played: Played) -> list[str]:
    """Why tasks failed."""
    return [str(task["result"].get("msg")) for task in played.events()["tasks"] if task["status"] == "failed"]


def boot_id(host: SimulatedHost) -> str:
    """The id of the host's boot."""
    return (host.read("/proc/sys/kernel/random/boot_id") or "").strip()


def shown(host: SimulatedHost, earlier: str) -> dict[str, str]:
    """All that a host is: mode and text of every file. What is its own, such as the ids of its boots, is one word."""
    words = {boot_id(host): "BOOT", earlier or "EARLIER": "EARLIER"}
    identity = (host.read("/etc/machine-id") or "").strip()
    words[identity] = "IDENTITY"
    found = {}
    for folder, below, files in os.walk(host.tree):
        for name in (*below, *files):
            path = os.path.join(folder, name)
            inside = path[len(host.tree) :].replace(identity, "IDENTITY")
            if inside.startswith(NOT_COMPARED):
                continue
            text = f"{os.lstat(path).st_mode:o} "
            if os.path.islink(path):
                text += os.readlink(path)
            elif os.path.isfile(path):
                text += Path(path).read_text(encoding="utf-8", errors="surrogateescape")
            for one, word in words.items():
                text = text.replace(one, word)
            found[inside] = text
    return {path: _without_noise(path, text) for path, text in found.items()}


def _without_noise(path: str, text: str) -> str:
    """The lock names the last process that held it; a killed pass may cost one more daemon-reload."""
    if path == f"{STATE}/lock":
        return re.sub(r"process \d+", "process", text)
    if path == "/run/sim/units.json":
        return re.sub(r'"reloads": \d+', '"reloads"', text)
    return text


def compared(host: SimulatedHost, earlier: str = "") -> dict[str, str]:
    """What hosts that converged in different ways have to agree in. A record that names no unit says the same as none.

    No debt is left in any of them. `earlier` is the id of the boot before this one.
    """
    found = shown(host, earlier)
    for name in ("owed", "tried", "reboot"):
        path = f"{STATE}/{name}.json"
        record = found.pop(path, "")
        if json.loads(record.partition(" ")[2] or '{"units": {}}')["units"]:
            assert name != "owed", record
            found[path] = record
    return found


def differing(one: dict[str, str], other: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """For a readable failure: only what differs."""
    paths = sorted(one.keys() | other.keys())
    return {path: (one.get(path), other.get(path)) for path in paths if one.get(path) != other.get(path)}


@pytest.mark.parametrize("case_name", CASES)
def test_a_pass_killed_at_any_change_is_taken_up_by_the_next(tmp_path: Path, case_name: str) -> None:
    case = CASES[case_name]
    whole = Fleet(tmp_path / "whole", case, 1)
    [(name, model)] = whole.hosts.items()
    first = whole.converge()
    assert first.rc == 0, reasons(first)
    expected = results(first)[name]
    number = len(model.changes())
    assert number > 1, model.changes()
    model.forget_calls()
    assert results(whole.converge())[name]["changed"] is False
    assert model.changes() == []

    killed = Fleet(tmp_path / "killed", case, number)
    places = range(1, number + 1)
    for step, host in zip(places, killed.hosts.values()):
        host.fault({"at_step": step, "do": "kill", "when": "after"})
    died = killed.converge()
    assert {where: results(died)[where].get("rc") for where in killed.hosts} == dict.fromkeys(killed.hosts, 137)
    for host in killed.hosts.values():
        host.fault()

    clean = killed.converge()
    assert clean.rc == 0, reasons(clean)
    for place, (where, host) in zip(places, killed.hosts.items()):
        got = results(clean)[where]
        assert got["section"] == expected["section"], (place, model.changes(), got)
        assert differing(compared(host), compared(model)) == {}, place
        host.forget_calls()
    again = results(killed.converge())
    assert {where: again[where]["changed"] for where in killed.hosts} == dict.fromkeys(killed.hosts, False)
    assert [host.changes() for host in killed.hosts.values()] == [[]] * len(killed.hosts)

    # What was asked of the next boot is there in all of them.
    earlier = boot_id(model)
    model.reboot()
    wanted = compared(model, earlier)
    for place, host in zip(places, killed.hosts.values()):
        earlier = boot_id(host)
        host.reboot()
        assert differing(compared(host, earlier), wanted) == {}, place
