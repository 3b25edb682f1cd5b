# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes through the program that is installed on a host: what the modules return, by one command; or the module.

A host's program is called by a script that notes each call. A twin without it shows what the module returns.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible import release

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import MADE
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program import program
from tests.sim import controller
from tests.sim import helper_socket as helper
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.marks import in_namespace, with_accounts
from tests.sim.tree import PROFILES, build

pytestmark = in_namespace
PYTHON = "/.sim/venv/bin/python"
BCD = "/usr/local/sbin/bcd"
ZIP = "/usr/lib/bcd/bcd.pyz"
ASKED = "/tmp/asked"
BEHIND = "/usr/local/sbin/bcd.installed"
NOTE = f'echo "$@" >> {ASKED}\n'
UNITS = {"sysctl": {"vm.swappiness": 10}, "cpu": {"isolate": "2-3"}}
ASIDE = {"module_args": {"max_disruption": "service"}}  # with core 2.16, which registers no invocation
IS_OLDEST_CORE = release.__version__.startswith("2.16.")
SECTION, PLAN, HOLDS = (f"bettercompute.bcd.{name}" for name in ("host_section", "host_plan", "cdi_holds"))
TOKEN = "abcdef.0123456789abcdef"
PIN = "8a1f0c3e5b7d9f2a4c6e8b0d1f3a5c7e9b2d4f6a8c0e1b3d5f7a9c2e4b6d8f0a"


class Fleet:
    """Hosts that are alike to the last byte, some with the program, and plays on them."""

    def __init__(self, scratch: Path, seed: str, hosts: dict[str, dict[str, Any]]) -> None:
        self.scratch = scratch
        trees = {name: str(scratch / name) for name in hosts}
        for tree in trees.values():
            shutil.copytree(seed, tree, symlinks=True)
        os.symlink(os.path.join(os.path.dirname(seed), "collections"), scratch / "collections")
        self.hosts = {name: SimulatedHost(tree) for name, tree in trees.items()}
        given = {name: {**variables, "sim_tree": trees[name]} for name, variables in hosts.items()}
        of_all = {"ansible_connection": "sim", "ansible_python_interpreter": self.hosts[next(iter(hosts))].python}
        self.inventory = str(scratch / "inventory.yml")
        Path(self.inventory).write_text(json.dumps({"all": {"hosts": given, "vars": of_all}}), encoding="utf-8")

    def asked(self, host: str) -> list[str]:
        """How the program of a host was called."""
        return (self.hosts[host].read(ASKED) or "").splitlines()

    def run(self, tasks: list[Any], *arguments: str, as_json: bool = True, **play: Any) -> Played:
        """Play tasks on all hosts."""
        book = self.scratch / "play.yml"
        whole = {"hosts": "all", "gather_facts": False, **play, "tasks": tasks}
        book.write_text(json.dumps([whole]), encoding="utf-8")
        variables = {"ANSIBLE_INJECT_INVOCATION": "1"}
        return controller.playbook(
            str(self.scratch), self.inventory, str(book), *arguments, as_json=as_json, variables=variables
        )

    def results(self, played: Played) -> dict[str, list[Any]]:
        """The tasks' results of each host: action, status and all keys."""
        found: dict[str, list[Any]] = {name: [] for name in self.hosts}
        for event in played.events()["tasks"]:
            found[event["host"]].append((event["action"], event["status"], event["result"]))
        return found


def note(host: SimulatedHost, rest: str) -> None:
    """Have the host's program note its calls, and then do the rest."""
    host.write(BCD, f"#!/bin/sh\n{MADE}\n{NOTE}{rest}\n", 0o755)


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return with_program(tmp_path_factory.mktemp("seed"))


def with_program(scratch: Path) -> str:
    """A host with the program, of a collection that nobody edits meanwhile."""
    controller.freeze(str(scratch))
    host = SimulatedHost(build(str(scratch / "tree"), PROFILES["debian"], "one"))
    path = Path(host.tree) / ZIP[1:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(program(str(scratch / "bcd/plugins/module_utils")).data)
    done = host.run(PYTHON, "-I", ZIP, "install")
    assert (done.returncode, done.stderr) == (0, "")
    os.rename(Path(host.tree) / BCD[1:], Path(host.tree) / BEHIND[1:])
    note(host, f'exec {BEHIND} "$@"')
    return host.tree


# -- the same results


def options(**more: Any) -> dict[str, Any]:
    return {"units": UNITS, "label": "one", **more}


# How options get to a module, and what Ansible makes of results, is each core's own.
ASKS: list[dict[str, Any]] = [
    {PLAN: options(fail_on="never", generation="{{ 5 }}")},
    {SECTION: options(generation=4)},
    # The secret is in what the pass says, where no result may show it.
    {SECTION: options(secrets={"a": "isolated"}), "loop": [1, 2], "check_mode": True},
    {SECTION: options(units="{{ units }}"), "vars": {"units": {**UNITS, "sysctl": {"vm.swappiness": "{{ 5 + 6 }}"}}}},
    {PLAN: options(units={"no-such-unit": {}, "sysctl": {"kernel.core_pattern": "|/bin/sh"}}, label="ein Würfel")},
    {HOLDS: {"assignments": [], "generation": 3}},
]
# What the program makes of them is not.
ASKS_OF_ONE_CORE: list[dict[str, Any]] = [
    {
        HOLDS: {
            "assignments": [
                {"allocation_id": "a1", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-0"}], "env": ["A=GPU-0"]}
            ]
        }
    },
    {SECTION: options(), "become": False},  # another account than root's: no helper is here
    {HOLDS: {"assignments": []}, "become": False, "check_mode": True},
]
# Which the module is left to; the others of these need no host to decide.
LEAVES: list[dict[str, Any]] = [{PLAN: options(max_disruption="reboot", fly=True)}]


def test_results_are_the_modules_key_by_key(seed: str, tmp_path: Path) -> None:
    """As root by become, and as another account; with defaults of the action group, and with differences."""
    hosts = Fleet(
        tmp_path,
        seed,
        {
            "program": {"sim_user": "admin"},
            "carried": {"sim_user": "admin"},
            "module": {"sim_user": "admin", "bcd_program_pass": False},
        },
    )
    hosts.hosts["carried"].remove(BCD)
    asks = ASKS if IS_OLDEST_CORE else [*ASKS, *ASKS_OF_ONE_CORE]
    tasks = [
        {"name": f"task {number}", "ignore_errors": True, "register": f"result_{number}", **task}
        for number, task in enumerate([*asks, *LEAVES])
    ]
    tasks.append({"ansible.builtin.debug": {"msg": [f"{{{{ result_{number} }}}}" for number in range(len(tasks))]}})
    defaults = {"group/bettercompute.bcd.all": {"max_disruption": "service"}}
    played = hosts.run(tasks, "--diff", become=True, module_defaults=defaults)
    found = hosts.results(played)
    for installed, carried, theirs in zip(found["program"], found["carried"], found["module"]):
        assert installed == theirs
        assert carried == theirs
    registered = found["program"][-1][2]["msg"]
    assert len(registered) == len(tasks) - 1
    assert registered[1]["diff"]
    invocation = registered[1].get("invocation", ASIDE)
    assert invocation["module_args"]["max_disruption"] == "service"
    assert registered[1]["ansible_facts"]["bcd_converge_status"]["changed"]
    assert [one["changed"] for one in registered[2]["results"]] == [False, False]
    assert "isolated" not in json.dumps(registered[2])
    assert registered[4]["failed"]
    if not IS_OLDEST_CORE:
        assert "node-unprivileged" in registered[7]["msg"]
    assert hosts.asked("program") == ["request"] * (len(asks) + 1)  # one is a loop of two
    assert hosts.asked("module") == []
    assert {host.read("/proc/sys/vm/swappiness") for host in hosts.hosts.values()} == {"11\n"}
    assert played.err == ""


def unit(name: str, **given: Any) -> dict[str, Any]:
    """A task of a unit's own module."""
    return {f"bettercompute.bcd.{name}": given}


def join(**more: Any) -> dict[str, Any]:
    """A worker that is to join, with a token, and a version that is a number."""
    address = {"api_server": "https://10.0.0.1:6443", "ca_cert_sha256": PIN, "token": TOKEN, "join_token_ref": "a:b"}
    return unit("k8s_join", kubernetes_version=1.32, labels={"a.example/b": "c"}, **address, **more)


def test_one_command_and_no_file_is_what_a_task_takes(seed: str, tmp_path: Path) -> None:
    """Where it is to be carried and no Python is named, Ansible looks for one before."""
    bare = {"ansible_python_interpreter": "auto_silent", "ansible_interpreter_python_fallback": [PYTHON]}
    hosts = Fleet(tmp_path, seed, {"one": {}, "bare": bare})
    hosts.hosts["bare"].remove(BCD)
    played = hosts.run([{SECTION: options(secrets={"a": "geheim", "b": "auchgeheim"})}], "-vvvv", as_json=False)
    lines = played.out.splitlines()
    one, several = (
        [line for line in lines if line.startswith((f"<{name}> EXEC", f"<{name}> PUT"))] for name in hosts.hosts
    )
    assert [f"exec {BCD} request" in line for line in one] == [True]
    assert f"{PYTHON} -I -c" in several[-1]
    assert any("echo FOUND" in line for line in several[:-1])
    assert not [line for line in several if "PUT" in line]
    assert "discovered_interpreter_python" in played.out
    assert {host.read("/proc/sys/vm/swappiness") for host in hosts.hosts.values()} == {"10\n"}
    assert played.rc == 0
    assert "geheim" not in played.out + played.err


@pytest.mark.newest_core
@with_accounts
def test_an_account_of_the_group_has_root_s_pass_by_the_helper(seed: str, tmp_path: Path) -> None:
    account = {"sim_account": helper.MEMBER}
    hosts = Fleet(tmp_path, seed, {"program": account, "module": {**account, "bcd_program_pass": "false"}})
    for host in hosts.hosts.values():
        host.write(ASKED, "", 0o666)
    tasks = [
        {SECTION: options()},
        {HOLDS: {"assignments": []}},
        unit("sysctl", values={"vm.swappiness": 20}),
        {**join(), "ignore_errors": True},
    ]
    with hosts.hosts["program"].helper(), hosts.hosts["module"].helper():
        played = hosts.run(tasks)
    found = hosts.results(played)
    assert found["program"] == found["module"]
    assert [status for _action, status, _result in found["program"]] == ["ok"] * 3 + ["ignored"]
    assert found["program"][0][2]["changed"]
    assert {host.read("/proc/sys/vm/swappiness") for host in hosts.hosts.values()} == {"20\n"}
    assert TOKEN not in played.out + played.err
    assert (len(hosts.asked("program")), hosts.asked("module")) == (4, [])


# -- the module instead


@pytest.mark.newest_core
def test_where_the_program_gives_no_result_the_module_does(seed: str, tmp_path: Path) -> None:
    """No program, or another one.

    One that says other things, or is killed, has failed as a module has that does: nobody makes its pass again unasked.
    """
    always = {"bcd_program_pass": True}
    hosts = Fleet(tmp_path, seed, dict.fromkeys(("forbidden", "other", "talks", "killed", "module"), always))
    host = hosts.hosts
    host["forbidden"].write(BCD, f"#!/nowhere/python\n{MADE}\n", 0o755)
    host["other"].write("/usr/lib/bcd/0.1.0/program.sha256", "0" * 64 + "\n")
    note(host["talks"], 'cat > /dev/null; echo \'{"bcd_answer": {"chan\'')
    host["killed"].fault({"at_step": 2, "do": "kill"})
    host["module"].remove(BCD)
    played = hosts.run([{SECTION: options(), "ignore_errors": True}, {SECTION: options()}])
    found = hosts.results(played)
    broken = {"talks": 2, "killed": 2}
    for name in host:
        assert found[name][0] == found["module"][0] or name in broken, name
        assert found[name][1] == found["module"][1] or name in broken, name
        asked = 0 if name in ("module", "forbidden") else broken.get(name, 1)  # and no second time in this run
        assert hosts.asked(name) == ["request"] * asked, name
    for name, rc in (("talks", 0), ("killed", 137)):
        _action, status, result = found[name][0]
        assert (status, result.get("rc", 0), "units" in result) == ("ignored", rc, False), result
    _action, status, result = found["killed"][1]  # the next pass ends what that one began
    assert (status, result["changed"], result["section"]["state"]) == (
        "ok",
        True,
        found["module"][0][2]["section"]["state"],
    )


@pytest.mark.newest_core
def test_of_many_hosts_without_it_three_are_asked(seed: str, tmp_path: Path) -> None:
    hosts = Fleet(tmp_path, seed, {f"bare-{number}": {} for number in range(4)})
    for host in hosts.hosts.values():
        note(host, "exit 127")
    played = hosts.run([{HOLDS: {"assignments": []}}], "--forks", "1")
    found = hosts.results(played)
    assert [status for name in hosts.hosts for _action, status, _result in found[name]] == ["ok"] * 4
    assert sorted(len(hosts.asked(name)) for name in hosts.hosts) == [0, 1, 1, 1]
    assert played.err == ""
