# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed at every change of a pass, then a clean pass: converged, and no follow-up is lost.

Real modules through real ansible-playbook. One host of a fleet dies right after each change that a pass makes; then a
clean pass over the fleet has to bring every host to where a host is that was never killed, down to the last byte of its
tree and what its service manager has loaded. That one is in the clean pass too, and has nothing to do in it: so it is
with all that are like it, and one of them shows that what was asked of the next boot comes with it.

Each unit's tests kill it at every change in every scene of its own, records of our own among them (tests/unit/units);
here is one scene for each way in which a host of another kind is changed.
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

pytestmark = pytest.mark.newest_core  # what a killed module leaves is not Ansible's doing
STATE = "/var/lib/bcd-hostconfig"
# Journals of the simulator, what tells one host from another, and what Ansible leaves of a module that was killed.
NOT_COMPARED = (
    "/var/log/sim",
    "/var/lib/sim",
    "/run/bcd-hostconfig",  # what quiet turns asked: of the next pass's speed, and of nothing that the host is
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


SHORT_OF_1G = machine(cpus=2, runtime_1g=1, boot_1g=4)
ONE_PASS = {
    "sysctl": {"vm.swappiness": 10},
    "hugepages": {"pages2m": 64, "pages1g": 2, "perNuma": True, "transparent": "never"},
    "cpu": {"governor": "performance", "isolate": "1"},
}
OSTREE = {"kernel-modules": {"load": ["tun"], "blacklist": ["nouveau"]}, "iommu": {}}
CASES = {
    # vhost_net stands on tun, which stays.
    "modules": Case(
        PROFILES["debian"],
        {"kernel-modules": {**KVM, "blacklist": ["nouveau", "vhost_net"]}},
        by_hand=(("modprobe", "kvm_intel", "nested=0"), ("modprobe", "vhost_net")),
    ),
    "one pass": Case(SHORT_OF_1G, ONE_PASS),
    "what leaves, and pages given back": Case(SHORT_OF_1G, {"hugepages": {"pages1g": 0}}, before=ONE_PASS),
    "dracut and grubby": Case(
        PROFILES["rocky"], {"kernel-modules": {"blacklist": ["nouveau"]}, "cpu": {"isolate": "4-7"}}
    ),
    "a unified image": Case(PROFILES["uki"], {"iommu": {}}),
    "ostree": Case(PROFILES["ostree"], OSTREE),
    "what leaves ostree": Case(PROFILES["ostree"], {}, before=OSTREE),
    "a shared GPU": Case(
        PROFILES["rtx"]._replace(gpus=("L40S",), runtimes=()), {"gpu-sharing": {"mode": "mps", "replicas": 2}}
    ),
}


class Fleet:
    """Hosts of one case, each as it was before the pass."""

    def __init__(self, scratch: Path, case: Case, name: str, number: int) -> None:
        self.scratch = scratch
        self.section = case.section
        # The first is the one that was built; its copies, which are alike to the last directory, are the fleet.
        self.inventory = fleet.make(str(scratch), [fleet.Hosts(name, case.machine, number + 1)])
        self.built, *names = sorted(os.listdir(scratch / "trees"))
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

    def converge(self, section: Mapping[str, Any] | None = None, beside: Fleet | None = None) -> Played:
        """One pass over all of them, and over those of another fleet, by the shipped playbook."""
        fleets = [self, *([beside] if beside else [])]
        units = json.dumps({"bcd_converge_units": dict(self.section if section is None else section)})
        more = [word for each in fleets[1:] for word in ("-i", each.inventory)]
        limit = "all," + ",".join(f"!{each.built}" for each in fleets)
        words = (*more, "--limit", limit, "--extra-vars", units)
        return controller.playbook(
            str(self.scratch), self.inventory, "bettercompute.bcd.converge", *words, as_json=True
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
    whole = Fleet(tmp_path / "whole", case, "whole", 1)
    [(name, model)] = whole.hosts.items()
    first = whole.converge()
    assert first.rc == 0, reasons(first)
    expected = results(first)[name]
    places = [number for number, change in enumerate(model.changes(), 1) if f" {STATE}/" not in change]
    assert len(places) > 1, model.changes()

    killed = Fleet(tmp_path / "killed", case, "killed", len(places))
    for step, host in zip(places, killed.hosts.values()):
        host.fault({"at_step": step, "do": "kill", "when": "after"})
    died = killed.converge()
    assert {where: results(died)[where].get("rc") for where in killed.hosts} == dict.fromkeys(killed.hosts, 137)
    for host in (model, *killed.hosts.values()):
        host.fault()

    clean = killed.converge(beside=whole)
    assert clean.rc == 0, reasons(clean)
    assert (results(clean)[name]["changed"], model.changes()) == (False, [])
    for place, (where, host) in zip(places, killed.hosts.items()):
        got = results(clean)[where]
        assert got["section"] == expected["section"], (place, host.changes(), got)
        assert differing(compared(host), compared(model)) == {}, place

    last = killed.hosts[max(killed.hosts)]
    booted = []
    for host in (model, last):
        earlier = boot_id(host)
        host.reboot()
        booted.append(compared(host, earlier))
    assert differing(*booted) == {}
