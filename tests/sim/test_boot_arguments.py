# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu and iommu on every boot loader, by the real ansible-playbook on simulated hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

pytestmark = pytest.mark.newest_core  # what boot loaders do is not Ansible's doing
LOADERS = ("debian", "suse", "rocky", "systemd-boot", "uki", "ostree")
WANTED = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3"
SET = """
- hosts: all
  gather_facts: false
  tasks:
    - bettercompute.bcd.cpu: {isolate: 2-3}
    - bettercompute.bcd.iommu:
"""
GONE = """
- hosts: all
  gather_facts: false
  tasks:
    - bettercompute.bcd.cpu: {state: absent}
    - bettercompute.bcd.iommu: {state: absent}
"""
Results = dict[tuple[str, str], dict[str, Any]]


class Loaders:
    """A host of each loader, and what a play gave on each: by host and module."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        names = [fleet.Hosts(name.replace("-", "_"), PROFILES[name]) for name in LOADERS]
        self.inventory = fleet.make(str(scratch), names)

    def play(self, text: str, *arguments: str) -> Results:
        """Run a play on all of them."""
        path = self.scratch / "play.yml"
        path.write_text(text, encoding="utf-8")
        played = controller.playbook(str(self.scratch), self.inventory, str(path), *arguments, as_json=True)
        assert played.rc == 0, played.out + played.err
        return {(task["host"], task["action"].rpartition(".")[2]): task["result"] for task in played.events()["tasks"]}

    def hosts(self) -> dict[str, SimulatedHost]:
        """The trees."""
        names = [name.replace("-", "_") for name in LOADERS]
        return {f"{name}-01": SimulatedHost(str(self.scratch / "trees" / f"{name}-01")) for name in names}


@pytest.fixture
def loaders(tmp_path: Path) -> Loaders:
    return Loaders(tmp_path)


def _steps(results: Results) -> dict[tuple[str, str], list[str]]:
    return {name: [step["action"] for step in result["steps"]] for name, result in results.items()}


def test_arguments_come_by_a_boot_of_that_loader_and_go_again(loaders: Loaders) -> None:
    hosts = loaders.hosts()
    before = {name: host.read("/proc/cmdline") for name, host in hosts.items()}
    foreseen = loaders.play(SET, "--check")
    assert not any(host.changes() for host in hosts.values())
    first = loaders.play(SET)
    assert len(first) == 2 * len(LOADERS)
    assert _steps(foreseen) == _steps(first)
    assert all(result["changed"] and result["reboot_required"] for result in first.values())

    waiting = loaders.play(SET)
    assert [name for name, result in waiting.items() if result["changed"] or result["steps"]] == []
    assert {name: result["pending"] for name, result in waiting.items()} == {
        name: result["pending"] for name, result in first.items()
    }

    for host in hosts.values():
        host.change(misboot="other-loader")
        host.reboot()
    for where, result in loaders.play(SET).items():
        (wait,) = result["pending"]
        assert "booted without the argument" in wait["message"], where
        assert "reboot the node" in wait["message"], where
        assert not result["changed"], where

    for name, host in hosts.items():
        host.change(misboot="")
        host.reboot()
        assert WANTED in (host.read("/proc/cmdline") or ""), name
        assert "intel_iommu=on iommu=pt" in (host.read("/proc/cmdline") or ""), name
        assert (host.read("/sys/devices/system/cpu/isolated") or "").strip() == "2-3", name
    after = loaders.play(SET)
    assert {name for name, result in after.items() if result["state"] != "converged" or result["changed"]} == set()

    loaders.play(GONE)
    for name, host in hosts.items():
        host.reboot()
        assert sorted((host.read("/proc/cmdline") or "").split()) == sorted((before[name] or "").split())
