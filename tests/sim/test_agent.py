# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent on simulated hosts: laid by its role, it repairs drift, and the next run of Ansible tells of it, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.exit_status import PROGRESSING
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program import program
from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.marks import in_namespace
from tests.sim.tree import PROFILES

pytestmark = in_namespace
PYTHON = "/.sim/venv/bin/python"
BCD = "/usr/local/sbin/bcd"
ZIP = "/usr/lib/bcd/bcd.pyz"
TIMER, SERVICE = (f"/etc/systemd/system/bcd-agent.{kind}" for kind in ("timer", "service"))
AGENT = "/var/lib/bcd-hostconfig/agent.json"
UNITS = {"kernel-modules": {"load": ["tun"]}, "sysctl": {"vm.swappiness": 10}}
SWAPPINESS = "/proc/sys/vm/swappiness"


class Site:
    """One simulated host, and plays on it."""

    def __init__(self, scratch: Path, profile: str) -> None:
        self.scratch = scratch
        controller.freeze(str(scratch))  # the program is another one as soon as somebody edits its code
        self.inventory = fleet.make(str(scratch / "fleet"), [fleet.Hosts("one", PROFILES[profile])])
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / "one-01"))
        self.host.run("true")  # the first entry leaves what a later one mounts upon

    def install(self) -> None:
        """The program, without Ansible."""
        (Path(self.host.tree) / ZIP[1:]).parent.mkdir(parents=True, exist_ok=True)
        (Path(self.host.tree) / ZIP[1:]).write_bytes(program().data)
        done = self.host.run(PYTHON, "-I", ZIP, "install")
        assert done.returncode == 0, done.stderr

    def agent(self, *arguments: str, **variables: Any) -> dict[str, dict[str, Any]]:
        """The role; the result of each task by its name."""
        role = {"name": "bettercompute.bcd.bcd_agent"}
        given = {"bcd_program_python": PYTHON, **variables}
        book = self.scratch / "agent.yml"
        tasks = [{"ansible.builtin.import_role": role}]
        play = {"hosts": "all", "gather_facts": False, "vars": given, "tasks": tasks}
        book.write_text(json.dumps([play]), encoding="utf-8")
        played = controller.playbook(str(self.scratch), self.inventory, str(book), *arguments, as_json=True)
        assert played.rc == 0, played.out + played.err
        return {event["task"]: event["result"] for event in played.events()["tasks"]}

    def converge(self, *arguments: str, **variables: Any) -> tuple[int, dict[str, dict[str, Any]]]:
        """The shipped playbook: its exit status, and the results that have a section, by "units" and "devices"."""
        given = json.dumps({"bcd_converge_units": UNITS, **variables})
        what = "bettercompute.bcd.converge"
        words = (*arguments, "--extra-vars", given)
        played = controller.playbook(str(self.scratch), self.inventory, what, *words, as_json=True)
        results = [event["result"] for event in played.events()["tasks"]]
        found = {("units" if "units" in each else "devices"): each for each in results if "section" in each}
        return played.rc, found


def changed(results: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, result in results.items() if result.get("changed")]


@pytest.mark.newest_core
def test_the_role_lays_the_agent_once_and_takes_it_away(tmp_path: Path) -> None:
    site = Site(tmp_path, "debian")
    host = site.host
    assert changed(site.agent("--check", "--diff"))
    assert (host.read(TIMER), host.read(SERVICE), host.calls("update-grub")) == (None, None, [])
    assert changed(site.agent("--diff"))
    assert host.run("systemctl", "is-enabled", "bcd-agent.timer").stdout == "enabled\n"
    assert host.run("systemctl", "is-active", "bcd-agent.timer").stdout == "active\n"
    service = (host.read(SERVICE) or "").splitlines()
    wanted = ["ExecStart=/usr/local/sbin/bcd agent", f"RestartForceExitStatus={PROGRESSING}", "RestartSec=30"]
    assert [line for line in wanted if line not in service] == []
    # Before systemd 256 a oneshot with RestartForceExitStatus is no unit at all.
    assert [line for line in service if line.startswith("Type=")] == ["Type=exec"]
    sandbox = (Path(controller.CHECKOUT) / "roles/bcd_helper/files/sandbox.conf").read_text(encoding="utf-8")
    assert [line for line in sandbox.splitlines() if line not in service] == []
    assert host.run(BCD, "agent").stdout == "nothing to keep: this host was not asked anything yet\n"
    for arguments in (("--diff",), ("--check", "--diff")):
        assert changed(site.agent(*arguments)) == []
    assert changed(site.agent("--check", bcd_agent_state="absent"))
    assert host.read(TIMER)
    assert changed(site.agent(bcd_agent_state="absent"))
    assert (host.read(TIMER), host.read(SERVICE)) == (None, None)
    assert changed(site.agent(bcd_agent_state="absent")) == []


@pytest.mark.newest_core
def test_drift_is_repaired_and_told_by_the_next_run_once(tmp_path: Path) -> None:
    """A run that is killed in the middle leaves it to the one behind it."""
    site = Site(tmp_path, "debian")
    host = site.host
    site.install()
    assert site.converge()[0] == 0

    host.set(SWAPPINESS, "60")
    host.remove("/etc/modules-load.d/bcd.conf")
    host.forget_calls()
    done = host.run(BCD, "agent")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "host CONVERGED")
    assert host.read(SWAPPINESS) == "10\n"
    assert "tun" in (host.read("/etc/modules-load.d/bcd.conf") or "")
    repaired = [line.partition(": ")[0] for line in done.stdout.splitlines()[:-1]]
    assert set(repaired) == {"kernel-modules", "sysctl"}

    host.forget_calls()
    quiet = host.run(BCD, "agent")
    assert (quiet.returncode, quiet.stdout, host.changes()) == (0, "host CONVERGED\n", [])

    host.fault({"path": AGENT, "do": "kill"})
    assert site.converge()[0] != 0
    host.fault()
    rc, told = site.converge()
    assert [repair["unit"] for repair in told["units"]["agent"]["repairs"]] == repaired
    assert (rc, told["units"]["changed"]) == (0, False)
    assert "agent" not in site.converge()[1]["units"]


@pytest.mark.newest_core
def test_after_a_reboot_without_a_controller_the_host_is_kept(tmp_path: Path) -> None:
    """Holds too: what a boot takes is made again, and the next run gets every event."""
    site = Site(tmp_path, "h100")
    host = site.host
    site.install()
    with host.gpus() as gpus:
        first, second = (card.uuid for card in gpus.cards)
    hold = {"allocation_id": "a1", "binding": "BINDING_HOLD", "devices": [{"id": first, "device_class": "gpu"}]}
    given = {"bcd_devices_assignments": [hold], "bcd_devices_generation": 3}
    assert site.converge(**given)[0] == 0
    host.set(SWAPPINESS, "60")
    host.reboot()
    host.remove("/run/bcd/allocations/a1.env")
    done = host.run(BCD, "agent")
    assert done.stdout.splitlines()[-1] == "devices CONVERGED", done.stdout
    assert (done.returncode, host.read(SWAPPINESS)) == (0, "10\n")
    assert first in (host.read("/run/bcd/allocations/a1.env") or "")
    rc, told = site.converge(**given)
    assert (rc, told["devices"]["kept"]) == (0, ["a1"])
    assert [event["type"] for event in told["devices"]["events"]] == ["AllocationBound"]
    assert "devices" in {repair["unit"] for repair in told["units"]["agent"]["repairs"]}
    assert "agent" not in told["devices"]
    assert second not in (host.read("/run/bcd/allocations/a1.env") or "")
