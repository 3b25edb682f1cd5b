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
SECTION, PLAN, HOLDS = (f"bettercompute.bcd.{name}" for name in ("host_section", "host_plan", "cdi_holds"))


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
    """A host with the program, of a collection that nobody edits meanwhile."""
    scratch = tmp_path_factory.mktemp("seed")
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


ASKS: list[dict[str, Any]] = [
    {PLAN: options(fail_on="never")},
    {PLAN: {"wire_units": [{"unit": "sysctl", "settings": '{"vm.swappiness": 10}'}], "label": "one"}},
    {SECTION: options(), "check_mode": True},
    {SECTION: options(generation=4)},
    # The secret is in what the pass says, where no result may show it.
    {SECTION: options(secrets={"a": "isolated"}, generation="{{ 5 }}"), "loop": [1, 2]},
    {SECTION: options(units="{{ units }}"), "vars": {"units": {**UNITS, "sysctl": {"vm.swappiness": "{{ 5 + 6 }}"}}}},
    {SECTION: options(fail_on="progressing")},
    {SECTION: options(units={"no-such-unit": {}, "sysctl": {}})},
    {SECTION: options(units={"sysctl": {"kernel.core_pattern": "|/bin/sh"}}, label="ein Würfel")},
    {HOLDS: {"assignments": [], "generation": 3}},
    {
        HOLDS: {
            "assignments": [
                {"allocation_id": "a1", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-0"}], "env": ["A=GPU-0"]}
            ]
        }
    },
    {HOLDS: {"acknowledge": ["no-such-event"]}},
    {SECTION: options(), "become": False},  # another account than root's: no helper is here
    {HOLDS: {"assignments": []}, "become": False, "check_mode": True},
]
# Which the module is left to: wrong options, variables for what it runs, and a job of its own.
LEAVES: list[dict[str, Any]] = [
    {SECTION: {"label": "one"}},
    {SECTION: options(wire_units=[])},
    {SECTION: options(max_disruption="reboot", fly=True)},
    {PLAN: options(only="{{ {} }}")},
    {HOLDS: {"assignments": [{"allocation_id": "a"}]}},
    {PLAN: options(fail_on="never"), "environment": {"LANG": "C"}},
    {PLAN: options(fail_on="never"), "vars": {"ansible_pipelining": False}},
]


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
    tasks = [
        {"name": f"task {number}", "ignore_errors": True, "register": f"result_{number}", **task}
        for number, task in enumerate([*ASKS, *LEAVES])
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
    assert registered[3]["diff"]
    invocation = registered[3].get("invocation", ASIDE)
    assert invocation["module_args"]["max_disruption"] == "service"
    assert registered[3]["ansible_facts"]["bcd_converge_status"]["changed"]
    assert [one["changed"] for one in registered[4]["results"]] == [False, False]
    assert "isolated" not in json.dumps(registered[4])
    assert [one["failed"] for one in registered[6:9]] == [True, True, True]
    assert "node-unprivileged" in registered[12]["msg"]
    assert hosts.asked("program") == ["request"] * (len(ASKS) + 1)  # one is a loop of two
    assert hosts.asked("module") == []
    assert {host.read("/proc/sys/vm/swappiness") for host in hosts.hosts.values()} == {"10\n"}
    assert played.err == ""


def test_one_command_and_no_file_is_what_a_task_takes(seed: str, tmp_path: Path) -> None:
    hosts = Fleet(tmp_path, seed, {"one": {}})
    task = {SECTION: options(secrets={"a": "geheim", "b": "auchgeheim"})}
    played = hosts.run([task, task], "-vvvv", as_json=False)
    lines = [line for line in played.out.splitlines() if line.startswith(("<one> EXEC", "<one> PUT"))]
    assert [line.split()[1] for line in lines] == ["EXEC", "EXEC"]
    assert all(f"exec {BCD} request" in line for line in lines)
    assert played.rc == 0
    assert "geheim" not in played.out + played.err


@with_accounts
def test_an_account_of_the_group_has_root_s_pass_by_the_helper(seed: str, tmp_path: Path) -> None:
    account = {"sim_account": helper.MEMBER}
    hosts = Fleet(tmp_path, seed, {"program": account, "module": {**account, "bcd_program_pass": "false"}})
    for host in hosts.hosts.values():
        host.write(ASKED, "", 0o666)
    tasks = [{SECTION: options(), "check_mode": True}, {SECTION: options()}, {HOLDS: {"assignments": []}}]
    with hosts.hosts["program"].helper(), hosts.hosts["module"].helper():
        found = hosts.results(hosts.run(tasks))
    assert found["program"] == found["module"]
    assert [status for _action, status, _result in found["program"]] == ["ok"] * 3
    assert found["program"][1][2]["changed"]
    assert (len(hosts.asked("program")), hosts.asked("module")) == (3, [])


# -- the module instead


def test_where_the_program_gives_no_result_the_module_does(seed: str, tmp_path: Path) -> None:
    """No program, another one; what has its name and is not ours is not even called.

    One that says other things, or is killed, has failed as a module has that does: nobody makes its pass again unasked.
    """
    always = {"bcd_program_pass": True}
    hosts = Fleet(
        tmp_path,
        seed,
        dict.fromkeys(("gone", "forbidden", "other", "old", "talks", "killed", "foreign", "module"), always),
    )
    host = hosts.hosts
    note(host["gone"], "exit 127")
    host["forbidden"].write(BCD, f"#!/nowhere/python\n{MADE}\n", 0o755)
    host["foreign"].write(BCD, f"#!/bin/sh\n# Bulk copy of data.\n{NOTE}", 0o755)
    host["other"].write("/usr/lib/bcd/0.1.0/program.sha256", "0" * 64 + "\n")
    note(host["old"], "echo 'usage: bcd [-h] [--version] WORD' >&2; exit 64")
    note(host["talks"], 'cat > /dev/null; echo \'{"bcd_answer": {"chan\'')
    host["killed"].fault({"at_step": 2, "do": "kill"})
    host["module"].remove(BCD)
    played = hosts.run([{SECTION: options(), "ignore_errors": True}, {SECTION: options()}])
    found = hosts.results(played)
    broken = {"talks": 2, "killed": 2}
    for name in host:
        assert found[name][0] == found["module"][0] or name in broken, name
        assert found[name][1] == found["module"][1] or name in broken, name
        asked = (
            0 if name in ("module", "forbidden", "foreign") else broken.get(name, 1)
        )  # and no second time in this run
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
    hosts = Fleet(tmp_path, seed, {f"bare-{number}": {} for number in range(5)})
    for host in hosts.hosts.values():
        note(host, "exit 127")
    played = hosts.run([{PLAN: options(fail_on="never")}, {HOLDS: {"assignments": []}}], "--forks", "1")
    found = hosts.results(played)
    assert [status for name in hosts.hosts for _action, status, _result in found[name]] == ["ok"] * 10
    assert sorted(len(hosts.asked(name)) for name in hosts.hosts) == [0, 0, 1, 1, 1]
    assert played.err == ""
