# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ansible-playbook on simulated hosts: everything works, everything stays inside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sim import controller, fleet, mode
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

from .conftest import NO_NAMESPACES, fingerprint

MODULES = """
- hosts: all
  gather_facts: true
  tasks:
    - name: facts
      debug: {msg: "{{ ansible_hostname }} {{ ansible_distribution }} {{ ansible_kernel }} {{ ansible_service_mgr }}"}
    - {name: copy, copy: {content: "hello", dest: /etc/marker-of-sim, mode: "0600"}}
    - {name: file, file: {path: /srv/made, state: directory}}
    - {name: template, template: {src: one.j2, dest: /etc/one}}
    - {name: command, command: cat /etc/marker-of-sim /etc/one /proc/cmdline}
    - {name: slurp, slurp: {src: /proc/sys/vm/swappiness}}
    - {name: raw, raw: "cat /proc/sys/kernel/random/boot_id"}
    - {name: reboot, reboot: {reboot_timeout: 300}}
    - {name: again, raw: "cat /proc/sys/kernel/random/boot_id"}
    - {name: fetch, fetch: {src: /etc/os-release, dest: "{{ playbook_dir }}/fetched/"}}
"""
BECOME = """
- hosts: all
  gather_facts: false
  tasks:
    - {name: before, command: id -u}
    - {name: after, command: id -u, become: true}
"""
UNIT = """
- hosts: all
  gather_facts: false
  tasks:
    - name: unit
      bettercompute.bcd.kernel_modules: {load: [tun, vhost_net], options: {vhost_net: experimental_zcopytx=1}}
"""
SECTION = """
- hosts: all
  gather_facts: false
  tasks:
    - {name: unit, bettercompute.bcd.host_plan: {units: {kernel-modules: {load: [tun]}}}}
"""
ESCAPES = """
- hosts: all
  gather_facts: false
  ignore_errors: true
  tasks:
    - {name: command, command: "touch MARK"}
    - {name: raw, raw: "touch MARK"}
    - {name: raw plumbing, raw: "echo ~ && sleep 0; touch MARK"}
    - {name: copy, copy: {content: x, dest: MARK}}
    - {name: script, script: script.sh}
"""


def play(
    scratch: Path, inventory: str, text: str, *words: str, **more: Any
) -> tuple[controller.Played, dict[str, Any]]:
    """Run a playbook; what was played and the result of each task by name."""
    (scratch / "play.yml").write_text(text, encoding="utf-8")
    played = controller.playbook(str(scratch), inventory, "play.yml", *words, as_json=True, **more)
    assert "{" in played.out, played.out + played.err
    return played, {task["task"]: task for task in played.events()["tasks"]}


def one_host(scratch: Path, profile: str = "debian", **variables: Any) -> tuple[str, SimulatedHost]:
    kinds = [fleet.Hosts("node", PROFILES[profile])]
    inventory = fleet.make(str(scratch / "fleet"), kinds, sys.executable, {"node-01": variables})
    return inventory, SimulatedHost(str(scratch / "fleet" / "trees" / "node-01"))


@pytest.mark.parametrize("pipelining", ["1", "0"])
def test_ansibles_own_modules_work_and_stay_inside(tmp_path: Path, pipelining: str) -> None:
    inventory, host = one_host(tmp_path, "rocky")
    (tmp_path / "one.j2").write_text("{{ inventory_hostname }}\n", encoding="utf-8")
    before = fingerprint("/etc")
    played, tasks = play(tmp_path, inventory, MODULES, variables={"ANSIBLE_PIPELINING": pipelining})
    assert played.rc == 0, played.out + played.err
    assert tasks["facts"]["result"]["msg"] == "node-01 Rocky 5.14.0-427.13.1.el9_4.x86_64 systemd"
    assert tasks["command"]["result"]["stdout"].startswith("hellonode-01\nBOOT_IMAGE=")
    assert tasks["reboot"]["result"]["rebooted"] is True
    assert tasks["raw"]["result"]["stdout"] != tasks["again"]["result"]["stdout"]
    assert (
        (tmp_path / "fetched" / "node-01" / "etc" / "os-release").read_text(encoding="utf-8").startswith('NAME="Rocky')
    )
    assert host.read("/etc/marker-of-sim") == "hello"
    assert fingerprint("/etc") == before
    assert not Path("/srv/made").exists()


def test_become_makes_another_account_root(tmp_path: Path) -> None:
    inventory, _unused = one_host(tmp_path, sim_user="admin")
    played, tasks = play(tmp_path, inventory, BECOME)
    assert played.rc == 0, played.out + played.err
    assert [tasks[name]["result"]["stdout"] for name in ("before", "after")] == ["1000", "0"]


def test_the_collections_modules_run_on_the_simulated_kernel(tmp_path: Path) -> None:
    inventory, host = one_host(tmp_path)
    played, tasks = play(tmp_path, inventory, UNIT)
    assert played.rc == 0, played.out + played.err
    assert (tasks["unit"]["result"]["changed"], tasks["unit"]["result"]["state"]) == (True, "converged")
    assert host.read("/sys/module/vhost_net/parameters/experimental_zcopytx") == "1\n"
    assert host.calls("modprobe") == [["modprobe", "--", "tun"], ["modprobe", "--", "vhost_net"]]
    assert "run modprobe -- tun" in host.changes()
    played, tasks = play(tmp_path, inventory, UNIT)
    assert played.rc == 0
    assert tasks["unit"]["result"]["changed"] is False


def test_a_module_killed_at_a_change_fails_and_the_next_pass_converges(tmp_path: Path) -> None:
    inventory, host = one_host(tmp_path)
    host.fault({"path": "modprobe -- tun", "do": "kill", "when": "after"})
    played, tasks = play(tmp_path, inventory, UNIT)
    assert played.rc == 2
    assert tasks["unit"]["status"] == "failed"
    assert host.read("/sys/module/tun/refcnt") == "0\n"  # it had been done
    assert host.read("/sys/module/vhost_net/refcnt") is None
    host.fault()
    played, tasks = play(tmp_path, inventory, UNIT)
    assert (played.rc, tasks["unit"]["result"]["state"]) == (0, "converged")


def test_a_host_that_is_down_is_unreachable(tmp_path: Path) -> None:
    inventory, host = one_host(tmp_path)
    host.change(misboot="never-back")
    host.reboot()
    _unused, tasks = play(tmp_path, inventory, UNIT)
    assert tasks["unit"]["status"] == "unreachable"
    host.up()
    assert play(tmp_path, inventory, UNIT)[0].rc == 0


def test_without_namespaces_only_the_collections_modules_run(tmp_path: Path) -> None:
    assert all(shutil.which(program) for program in ("unshare", "setpriv")), "util-linux is missing"
    inventory, host = one_host(tmp_path)
    mark = tmp_path / "mark"
    (tmp_path / "script.sh").write_text(f"#!/bin/sh\ntouch {mark}\n", encoding="ascii")
    before = fingerprint("/etc")
    for words in ((), ("--become",)):
        played, tasks = play(tmp_path, inventory, UNIT, *words, within=NO_NAMESPACES)
        assert (played.rc, tasks["unit"]["result"]["state"]) == (0, "converged"), played.out + played.err
        planned, tasks = play(tmp_path, inventory, SECTION, *words, within=NO_NAMESPACES)
        assert (planned.rc, tasks["unit"]["result"]["todo"]) == (0, ["kernel-modules"]), planned.out + planned.err
    assert host.read("/sys/module/tun/refcnt") == "1\n"  # vhost_net uses it
    assert host.read("/etc/modules-load.d/bcd.conf") is not None
    played, tasks = play(tmp_path, inventory, ESCAPES.replace("MARK", str(mark)), within=NO_NAMESPACES)
    assert {name: task["status"] for name, task in tasks.items()} == dict.fromkeys(tasks, "ignored")
    assert len(tasks) == 5
    assert "no namespace can be made here" in json.dumps(tasks["command"]["result"])
    assert not mark.exists()
    assert not Path(host.tree + str(mark)).exists()
    assert fingerprint("/etc") == before


def test_the_mode_is_named() -> None:
    command = [*NO_NAMESPACES, sys.executable, "-m", "tests.sim.mode"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=controller.CHECKOUT)
    assert done.stdout.startswith("simulated hosts are mapped into their trees")
    assert mode.sentence() == "simulated hosts run in mount namespaces of their own"


def test_a_fleet_has_its_own_names_and_groups(tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    command = [sys.executable, "-m", "tests.sim.fleet", str(out), "--hosts", "sand-box=debian:3", "--hosts", "el=rocky"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=controller.CHECKOUT)
    assert done.stdout == f"{out}/inventory.yml\n", done.stderr
    groups = json.loads((out / "inventory.yml").read_text(encoding="utf-8"))["all"]["children"]
    assert sorted(groups["sand_box"]["hosts"]) == ["sand-box-01", "sand-box-02", "sand-box-03"]
    hosts = [SimulatedHost(str(out / "trees" / name)) for name in os.listdir(out / "trees")]
    assert len({host.read("/proc/sys/kernel/random/boot_id") for host in hosts}) == 4
    assert len({host.read("/etc/machine-id") for host in hosts}) == 4
    assert {host.run("hostname").stdout.strip() for host in hosts} == {
        "sand-box-01",
        "sand-box-02",
        "sand-box-03",
        "el-01",
    }


def test_a_fleet_of_no_profile_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.sim.fleet", str(tmp_path / "fleet"), "--hosts", "a=b:1"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=controller.CHECKOUT)
    assert done.returncode == 2
    assert "profiles are debian" in done.stderr


def interpreters() -> list[str]:
    """The oldest and the newest Python for hosts that are at hand, this one at least."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(9, 15):
        if path := shutil.which(f"python3.{minor}"):
            done = subprocess.run([path, "-c", "import sys; print(sys.executable)"], check=False, capture_output=True)
            if done.returncode == 0:
                found[(3, minor)] = done.stdout.decode().strip()
    return [found[min(found)], found[max(found)]]


@pytest.mark.parametrize("which", [0, 1])
def test_the_hook_works_under_every_python_of_hosts(tmp_path: Path, which: int) -> None:
    inventory, host = one_host(tmp_path, ansible_python_interpreter=interpreters()[which])
    played, tasks = play(tmp_path, inventory, UNIT)
    assert (played.rc, tasks["unit"]["result"]["state"]) == (0, "converged"), played.out + played.err
    assert "run modprobe -- tun" in host.changes()
