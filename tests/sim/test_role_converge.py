# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role bcd_converge, and the modules host_plan and host_section, by real ansible-playbook on simulated hosts."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

newest_core = pytest.mark.newest_core
SYSCTL_FILE = "/etc/sysctl.d/90-bcd.conf"
APPLIED = "/var/lib/bcd-hostconfig/applied.json"
LOAD_FILE = "/etc/modules-load.d/bcd.conf"
BRIDGED = {
    "kernel-modules": {"load": ["tun", "br_netfilter"]},
    "sysctl": {"net.bridge.bridge-nf-call-iptables": 0, "vm.swappiness": 10},
}
ISOLATED = {"cpu": {"isolate": "2-3"}}
# One refused, one waiting for a key without its module, the others converge.
MIXED = {
    "kernel-modules": {"load": ["tun"]},
    "sysctl": {"net.bridge.bridge-nf-call-iptables": 0, "vm.swappiness": 10},
    "tpu-driver": {"branch": "580"},
}
HOST = "one-01"
# A whole host's result after a pass that failed and changed the host.
STATUS = ("changed", "units", "unconverged", "todo", "secrets_needed", "reboot_required", "section", "inventory", "msg")
RECAP = ("ok", "changed", "skipped", "failures", "rescued")


class Site:
    """One simulated host, and the role run on it."""

    def __init__(self, scratch: Path, profile: str = "debian", **variables: Any) -> None:
        self.scratch = scratch
        kind = fleet.Hosts("one", PROFILES[profile])
        self.inventory = fleet.make(str(scratch / "fleet"), [kind], hostvars={HOST: variables})
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / HOST))
        self.host.run("true")  # the first entry leaves what a later one mounts upon

    def role(self, units: Any = None, *arguments: str, **variables: Any) -> Ran:
        """Import the role with its variables (less the prefix) as the play's; `units` None leaves them undefined."""
        given = {f"bcd_converge_{name}": value for name, value in variables.items()}
        if units is not None:
            given["bcd_converge_units"] = units
        role = {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}
        return self.play([{"ansible.builtin.import_role": role}], *arguments, variables=given)

    def play(self, tasks: list[Any], *arguments: str, variables: dict[str, Any] | None = None, **more: Any) -> Ran:
        """Run tasks on the host."""
        book = self.scratch / "play.yml"
        play = {"hosts": "all", "gather_facts": False, "vars": variables or {}, "tasks": tasks, **more}
        book.write_text(json.dumps([play]), encoding="utf-8")
        return Ran(controller.playbook(str(self.scratch), self.inventory, str(book), *arguments, as_json=True))

    def section(self, *arguments: str, module: str = "host_section", **options: Any) -> Ran:
        """Run one of the two modules."""
        return self.play([{f"bettercompute.bcd.{module}": options}], *arguments)

    def digest(self) -> dict[str, str]:
        """Every path of the tree with its mode and content, but for the simulator's own and what quiet turns asked."""
        found = {}
        for folder, folders, files in os.walk(self.host.tree):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                inside = path[len(str(self.host.tree)) :]
                if inside.startswith(("/var/log/sim", "/run/sim", "/var/lib/sim", "/.sim", "/run/bcd-hostconfig")):
                    continue
                content = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else b""
                found[inside] = f"{os.lstat(path).st_mode:o} {hashlib.sha256(content).hexdigest()}"
        return found


class Ran:
    """What a run left."""

    def __init__(self, played: Played) -> None:
        self.rc = played.rc
        self.text = played.out + played.err
        self.events = played.events()

    @property
    def recap(self) -> dict[str, int]:
        stats = self.events["stats"][HOST]
        return {key: stats[key] for key in RECAP if stats[key]}

    @property
    def custom(self) -> Any:
        return self.events["custom"]["_run"]["bcd_converge_reboot_required"]

    def results(self, action: str) -> list[dict[str, Any]]:
        """The results of a module, in order."""
        return [event["result"] for event in self.events["tasks"] if event["action"].endswith(action)]

    @property
    def status(self) -> dict[str, Any]:
        """The last whole-host result."""
        passes = ("bettercompute.bcd.host_plan", "bettercompute.bcd.host_section")
        found = [event["result"] for event in self.events["tasks"] if event["action"] in passes]
        last: dict[str, Any] = found[-1]
        return last


Open = Callable[..., Site]


@pytest.fixture
def site(tmp_path: Path) -> Open:
    return lambda profile="debian", **variables: Site(tmp_path, profile, **variables)


def states(status: dict[str, Any]) -> dict[str, str]:
    return {unit["unit"]: unit["state"] for unit in status["units"]}


# -- one task


def test_a_first_pass_and_a_converged_host_in_one_task(site: Open) -> None:
    one = site()
    first = one.role(BRIDGED, generation=7)
    assert (first.rc, first.recap) == (0, {"ok": 1, "changed": 1}), first.text
    assert states(first.status) == {"kernel-modules": "converged", "sysctl": "converged"}
    assert first.status["section"]["observed_generation"] == 7
    assert first.status["inventory"]["kernel"] == "6.1.0-18-amd64"
    assert one.host.read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "0\n"
    second = one.role(BRIDGED, generation=7)
    assert (second.rc, second.recap) == (0, {"ok": 1}), second.text
    assert "inventory" not in second.status


def test_a_check_says_everything_and_touches_nothing(site: Open) -> None:
    one = site()
    before = one.digest()
    checked = one.role({**BRIDGED, **ISOLATED}, "--check", "--diff")
    assert (checked.rc, checked.recap) == (0, {"ok": 1, "changed": 1}), checked.text
    assert one.digest() == before
    steps = [step["action"] for unit in checked.status["units"] for step in unit["steps"]]
    assert [step for step in steps if "net.bridge.bridge-nf-call-iptables" in step and "known after" in step]
    # Callbacks take the task's own diff away; each unit's stays.
    assert SYSCTL_FILE in {entry["after_header"] for unit in checked.status["units"] for entry in unit["diff"]}
    assert checked.status["section"]["state"] == "PROGRESSING"


@newest_core
def test_what_is_done_is_what_the_check_said(site: Open) -> None:
    one = site()
    units = {"kernel-modules": {"load": ["tun"]}, "sysctl": {"vm.swappiness": 10}, **ISOLATED}

    def steps(ran: Ran) -> list[str]:
        return [step["action"] for unit in ran.status["units"] for step in unit["steps"]]

    said = steps(one.role(units, "--check"))
    assert said
    assert steps(one.role(units)) == said


@newest_core
def test_a_host_that_waits_for_its_reboot_is_left_alone_and_says_so(site: Open) -> None:
    one = site()
    one.role(ISOLATED)
    for _pass in range(2):
        again = one.role(ISOLATED)
        assert (again.rc, again.recap) == (0, {"ok": 1}), again.text
        assert again.status["reboot_required"] is True
        (condition,) = again.status["section"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("RebootRequired", "true", "cpu")
        assert "reboot the node" in condition["message"]
        assert "reboot the node" in again.custom[HOST]["cpu"]
    one.host.reboot()
    after = one.role(ISOLATED)
    assert (after.rc, after.recap, after.status["section"]["state"]) == (0, {"ok": 1}, "CONVERGED"), after.text
    assert after.custom == {HOST: {}}


@newest_core
def test_an_empty_section_cleans_what_was_applied(site: Open) -> None:
    one = site()
    one.role({**BRIDGED, **ISOLATED})
    assert one.host.read(LOAD_FILE)
    cleaned = one.role({})
    assert cleaned.rc == 0, cleaned.text
    assert [unit["unit"] for unit in cleaned.status["units"]] == ["kernel-modules", "sysctl", "cpu"]
    for path in (LOAD_FILE, SYSCTL_FILE, "/etc/default/grub.d/90-bcd-cpu.cfg"):
        assert one.host.read(path) is None
    assert one.role({}).status["units"] == []


# -- one refused, one waiting, the others converge


def test_one_report_names_the_refused_and_the_waiting_and_the_others_converge(site: Open) -> None:
    one = site()
    rescue = {"ansible.builtin.debug": {"msg": "{{ ansible_facts.bcd_converge_status | to_json }}"}}
    role = {"ansible.builtin.import_role": {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}}
    ran = one.play([{"block": [role], "rescue": [rescue]}], variables={"bcd_converge_units": {**MIXED, **ISOLATED}})
    assert ran.rc == 0, ran.text
    assert states(ran.status) == {
        "kernel-modules": "converged",
        "sysctl": "progressing",
        "cpu": "progressing",
        "tpu-driver": "failed",
    }
    assert one.host.read("/proc/sys/vm/swappiness") == "10\n"
    (report,) = ran.results("fail")
    assert report["msg"] == ran.status["msg"] == ran.status["section"]["message"]
    assert (
        "this kernel has no net.bridge.bridge-nf-call-iptables (is the module that provides it loaded?)"
        in report["msg"]
    )
    assert "tpu-driver: there is no unit 'tpu-driver'" in report["msg"]
    # A failed task loses facts and statistics: the role gives them back.
    assert "reboot the node" in ran.custom[HOST]["cpu"]
    (shown,) = ran.results("debug")
    fact = json.loads(shown["msg"]) if isinstance(shown["msg"], str) else shown["msg"]
    expected = {key: ran.status[key] for key in STATUS}
    assert {**fact, "failed": True} == {**expected, "failed": True}
    assert fact["failed"] is True
    assert "ansible_facts" not in ran.status


def test_a_failure_is_printed_once_a_result(site: Open) -> None:
    one = site(bcd_converge_units=MIXED)
    book = one.scratch / "failing.yml"
    role = {"ansible.builtin.import_role": {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}}
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [role]}]), encoding="utf-8")
    played = controller.playbook(str(one.scratch), one.inventory, str(book))
    assert played.rc == 2
    shown = [line.strip().lstrip("- ") for line in played.out.splitlines()]
    assert [line for line in shown if line.startswith("unconverged:")] == ["unconverged:"], played.out
    assert shown.count("unit: tpu-driver") == 1


FAIL_ON = ("never", "terminal", "failed", "progressing")
SECTIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "converged": ({"sysctl": {"vm.swappiness": 10}}, ()),
    "waiting": ({"sysctl": {"no.such_key": 1}}, ("progressing",)),
    "stuck": ({"kernel-modules": {"load": ["no_such_module"]}}, ("failed", "progressing")),
    "refused": ({"sysctl": {"kernel.core_pattern": "|/x"}}, ("terminal", "failed", "progressing")),
}


@pytest.mark.parametrize("mode", ["single", pytest.param("tasks", marks=newest_core)])
def test_a_host_fails_by_fail_on(tmp_path: Path, mode: str) -> None:
    """One host for each pair of a section and a fail_on: those that fail are those that should."""
    pairs = {f"{name}-{kind}": (units, kind) for name, (units, _failing) in SECTIONS.items() for kind in FAIL_ON}
    inventory = fleet.make(
        str(tmp_path / "fleet"),
        [fleet.Hosts(name, PROFILES["vm"]) for name in pairs],
        hostvars={
            f"{name}-01": {"bcd_converge_units": units, "bcd_converge_fail_on": kind}
            for name, (units, kind) in pairs.items()
        },
    )
    book = tmp_path / "play.yml"
    role = {"ansible.builtin.import_role": {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}}
    play = {"hosts": "all", "gather_facts": False, "vars": {"bcd_converge_mode": mode}, "tasks": [role]}
    book.write_text(json.dumps([play]), encoding="utf-8")
    played = controller.playbook(str(tmp_path), inventory, str(book), as_json=True)
    assert played.rc == 2, played.out
    failed = {host.removesuffix("-01") for host, stats in played.events()["stats"].items() if stats["failures"]}
    assert failed == {f"{name}-{kind}" for name, (_units, failing) in SECTIONS.items() for kind in failing}


# -- a task a unit


def test_unit_by_unit(site: Open) -> None:
    one = site()
    first = one.role(BRIDGED, mode="tasks", generation=3)
    assert (first.rc, first.recap) == (0, {"ok": 3, "changed": 1}), first.text
    looped, closing = first.results("host_section")
    turns = looped["results"]
    assert (closing["changed"], closing["ansible_facts"]["bcd_converge_status"]["todo"]) == (False, [])
    assert [(turn["bcd_converge_unit"], turn["changed"]) for turn in turns] == [
        ("kernel-modules", True),
        ("sysctl", True),
    ]
    assert states(turns[0]) == {"kernel-modules": "converged", "sysctl": "progressing"}
    assert (first.status["section"]["state"], first.status["section"]["observed_generation"]) == ("CONVERGED", 3)
    second = one.role(BRIDGED, mode="tasks", generation=3)
    assert (second.rc, second.recap) == (0, {"ok": 2, "skipped": 1}), second.text


def test_unit_by_unit_goes_on_past_one_that_failed_and_reports_all(site: Open) -> None:
    one = site()
    units = {**MIXED, "kernel-modules": {"load": ["no_such_module", "tun"]}, **ISOLATED}
    ran = one.role(units, mode="tasks")
    assert ran.rc == 2, ran.text
    assert one.host.read("/proc/sys/vm/swappiness") == "10\n"
    (report,) = ran.results("fail")
    assert len([call for call in one.host.calls("modprobe") if "no_such_module" in call]) == 1
    for said in (
        "cannot load the module no_such_module",
        "sysctl: still to do: net.bridge.bridge-nf-call-iptables: known after the module no_such_module is loaded",
        "there is no unit 'tpu-driver'",
        "reboot the node",
    ):
        assert said in report["msg"]
    assert "reboot the node" in ran.custom[HOST]["cpu"]


@newest_core
def test_unit_by_unit_records_what_a_pass_in_one_task_records(site: Open) -> None:
    """Where no unit lacks anything: what was applied and the generation, though the record had been lost."""
    one = site()
    one.role(BRIDGED, generation=3)
    record = one.host.read(APPLIED)
    assert record
    one.host.remove(APPLIED)
    ran = one.role(BRIDGED, mode="tasks", generation=3)
    assert (ran.rc, ran.recap) == (0, {"ok": 2, "skipped": 1}), ran.text
    assert json.loads(one.host.read(APPLIED) or "{}") == json.loads(record)


@pytest.mark.parametrize("where", [pytest.param("-e", marks=newest_core), "role"])
def test_a_mode_that_is_known_when_the_role_is_loaded_costs_no_failure(site: Open, where: str) -> None:
    one = site(bcd_converge_units=BRIDGED)
    role: dict[str, Any] = {
        "ansible.builtin.import_role": {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}
    }
    if where == "role":
        role["vars"] = {"bcd_converge_mode": "tasks"}
    ran = one.play([role], *(["-e", "bcd_converge_mode=tasks"] if where == "-e" else []))
    assert (ran.rc, ran.recap) == (0, {"ok": 3, "changed": 1}), ran.text


def test_a_mode_from_the_inventory_is_heeded(site: Open) -> None:
    one = site(bcd_converge_mode="tasks")
    ran = one.role(BRIDGED)
    assert (ran.rc, ran.recap["rescued"]) == (0, 1), ran.text
    assert (len(ran.results("host_plan")), len(ran.results("host_section"))) == (1, 3), ran.text
    assert ran.status["section"]["state"] == "CONVERGED"
    assert one.host.read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "0\n"


@pytest.mark.parametrize("where", [pytest.param("play", marks=newest_core), "inventory"])
def test_a_check_is_one_plan_in_every_mode(site: Open, where: str) -> None:
    one = site(**({"bcd_converge_mode": "tasks"} if where == "inventory" else {}))
    before = one.digest()
    ran = one.role(BRIDGED, "--check", **({"mode": "tasks"} if where == "play" else {}))
    assert (ran.rc, ran.recap) == (0, {"ok": 1, "changed": 1}), ran.text
    assert one.digest() == before


@pytest.mark.parametrize("where", [pytest.param("play", marks=newest_core), "inventory"])
def test_a_mode_that_is_none_is_an_error(site: Open, where: str) -> None:
    one = site(**({"bcd_converge_mode": "Tasks"} if where == "inventory" else {}))
    given = {"bcd_converge_units": BRIDGED, **({"bcd_converge_mode": "Tasks"} if where == "play" else {})}
    book = one.scratch / "wrong.yml"
    role = {"ansible.builtin.import_role": {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}}
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "vars": given, "tasks": [role]}]))
    played = controller.playbook(str(one.scratch), one.inventory, str(book))
    assert played.rc != 0
    assert "it is single or tasks" in " ".join((played.out + played.err).split())
    assert one.host.changes() == []


# -- only, max_disruption, defaults


@pytest.mark.parametrize("mode", [pytest.param("single", marks=newest_core), "tasks"])
def test_only_applies_the_named_and_plans_the_rest(site: Open, mode: str) -> None:
    one = site()
    ran = one.role(BRIDGED, mode=mode, only=["kernel-modules"])
    assert ran.rc == 0, ran.text
    assert (one.host.read(SYSCTL_FILE), one.host.read("/proc/sys/vm/swappiness")) == (None, "60\n")
    assert one.host.read(LOAD_FILE)
    assert ran.status["todo"] == ["sysctl"]
    assert ran.status["section"]["state"] == "PROGRESSING"


@newest_core
def test_what_is_above_max_disruption_is_held_back_and_said(site: Open) -> None:
    one = site()
    one.host.run("modprobe", "kvm_intel")
    units = {"kernel-modules": {"load": ["kvm_intel"], "options": {"kvm_intel": "nested=1"}}}
    one.host.write("/sys/module/kvm_intel/parameters/nested", "N\n")
    for options in ({"max_disruption": "none"}, {"max_disruption": "none", "mode": "tasks"}):
        ran = one.role(units, **options)
        assert ran.rc == 0, ran.text
        (unit,) = ran.status["units"]
        assert [wait["reason"] for wait in unit["pending"]] == ["HeldBack"], ran.text
        assert one.host.read("/sys/module/kvm_intel/parameters/nested") == "N\n"
    assert states(one.role(units).status) == {"kernel-modules": "converged"}
    assert one.host.read("/sys/module/kvm_intel/parameters/nested") == "Y\n"


# -- sources


def test_no_section_is_an_error_and_no_empty_one(site: Open) -> None:
    one = site()
    one.role(BRIDGED)
    one.host.forget_calls()
    for mode in ("single", "tasks"):
        ran = one.role(mode=mode)
        assert ran.rc == 2, ran.text
        assert "bcd_converge_units is not defined" in ran.text
        assert one.host.read(SYSCTL_FILE)
    assert one.host.changes() == []


@newest_core
def test_the_section_as_it_travels(site: Open) -> None:
    one = site()
    wire = [
        {"unit": "sysctl", "settings": '{"vm.swappiness": 10}'},
        {"unit": "kernel-modules", "settings": '{"load": ["tun"], "load": []}'},
    ]
    ran = one.role(wire_units=wire, fail_on="never")
    assert states(ran.status) == {"kernel-modules": "failed", "sysctl": "converged"}, ran.text
    twice = one.role(wire_units=[*wire, {"unit": "sysctl", "settings": '{"vm.swappiness": 20}'}])
    assert twice.rc == 2
    assert "the section names sysctl twice" in twice.results("fail")[0]["msg"]
    assert one.host.read("/proc/sys/vm/swappiness") == "10\n"


@newest_core
@newest_core
def test_a_host_that_is_managed_outside_is_refused_by_the_letter(site: Open) -> None:
    outside = "host.unit: this host's configuration is managed outside bcd ([host] units = false in root's config.toml)"
    one = site()
    one.host.write("/etc/bcd/config.toml", "[host]\nunits = false\n", 0o640)
    ran = one.role(BRIDGED)
    assert ran.rc == 2
    assert ran.results("fail")[0]["msg"] == outside
    assert {(unit["unit"], unit["msg"]) for unit in ran.status["units"]} == {
        ("kernel-modules", outside),
        ("sysctl", outside),
    }
    assert one.host.changes() == []


# -- the modules by themselves


@newest_core
def test_a_plan_changes_nothing_and_is_changed_in_check_mode_only(site: Open) -> None:
    one = site()
    before = one.digest()
    plain = one.section(module="host_plan", units=BRIDGED)
    assert (plain.rc, plain.recap) == (0, {"ok": 1}), plain.text
    assert plain.status["todo"] == ["kernel-modules", "sysctl"]
    checked = one.section("--check", module="host_plan", units=BRIDGED)
    assert checked.recap == {"ok": 1, "changed": 1}
    assert checked.status["units"] == plain.status["units"]
    assert one.digest() == before


@newest_core
def test_a_plan_takes_no_root(site: Open) -> None:
    one = site(sim_user="admin")
    ran = one.section(module="host_plan", units=BRIDGED)
    assert ran.rc == 0, ran.text
    assert ran.status["todo"] == ["kernel-modules", "sysctl"]
    refused = one.section(units=BRIDGED)
    assert refused.rc == 2
    assert "node-unprivileged" in refused.status["msg"]
    assert one.host.changes() == []


def test_secrets_are_not_shown(site: Open) -> None:
    one = site()
    ran = one.section("-vvv", units={"sysctl": {"vm.swappiness": 10}}, secrets={"vault:token": "very-secret-words"})
    assert ran.rc == 0, ran.text
    assert "very-secret-words" not in json.dumps(ran.status)


def test_one_source_of_a_section_and_no_more(site: Open) -> None:
    one = site()
    assert one.section(label="x").rc == 2
    assert one.section(units={}, wire_units=[]).rc == 2
