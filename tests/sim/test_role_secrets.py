# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the role bcd_converge comes to the token of a join: looked up when it is due, once, and shown by nothing.

A copy of the collection has gate.py for its unit k8s-join.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.marks import in_namespace
from tests.sim.test_role_converge import HOST, Ran
from tests.sim.tree import PROFILES

pytestmark = in_namespace
newest_core = pytest.mark.newest_core

TOKEN = "abcdef.0123456789abcdef"
PARTS = (TOKEN, "0123456789abcdef")
WRONG = "zyxwvu.fedcba9876543210"
REFERENCE = "vault:kubernetes/gpu-pool"
SECTION = {"sysctl": {"vm.swappiness": 10}, "k8s-join": {"joinTokenRef": REFERENCE}}
# Says in a file what it was asked for, and gives what the environment holds.
LOOKUP = """
from __future__ import annotations

import os

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        with open(os.environ["TEST_LOOKUPS"], "a", encoding="utf-8") as asked:
            asked.write("".join(term + chr(10) for term in terms))
        if os.environ["TEST_TOKEN"] == "down":
            raise AnsibleError("the vault is sealed")
        return [os.environ["TEST_TOKEN"]]
"""
JOIN_TOKEN = "{{ lookup('counted', bcd_converge_join_token_ref) }}"


class Site:
    """One simulated host, the copy of the collection, and a vault that counts."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.inventory = fleet.make(str(scratch / "fleet"), [fleet.Hosts("one", PROFILES["vm"])])
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / HOST))
        self.host.run("true")
        self.host.write("/etc/gate/ready", "")
        self.collection = scratch / "copy"
        for folder in ("plugins", "roles", "playbooks", "meta"):
            shutil.copytree(
                Path(controller.CHECKOUT) / folder,
                self.collection / folder,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        shutil.copy(Path(controller.CHECKOUT) / "galaxy.yml", self.collection)
        link = Path(controller.collections(str(scratch))) / "ansible_collections" / "bettercompute" / "bcd"
        link.unlink()
        link.symlink_to(self.collection)
        gate = Path(__file__).with_name("gate.py").read_text(encoding="utf-8")
        unit = gate.replace("ansible_collections.bettercompute.bcd.plugins.module_utils.", "..")  # a program's, too
        (self.collection / "plugins" / "module_utils" / "units" / "k8s_join.py").write_text(unit, encoding="utf-8")
        (scratch / "lookup_plugins").mkdir()
        (scratch / "lookup_plugins" / "counted.py").write_text(LOOKUP, encoding="utf-8")
        self.asked = scratch / "asked"

    def lookups(self) -> list[str]:
        """The references that were looked up so far."""
        return self.asked.read_text("utf-8").splitlines() if self.asked.exists() else []

    def run(
        self,
        *arguments: str,
        token: str = TOKEN,
        as_json: bool = True,
        callback: str = "",
        pipelining: bool = True,
        **variables: Any,
    ) -> controller.Played:
        """Import the role, with its variables less the prefix."""
        given: dict[str, Any] = {"bcd_converge_units": SECTION, "bcd_converge_join_token": JOIN_TOKEN}
        given.update({f"bcd_converge_{name}": value for name, value in variables.items()})
        role = {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}
        play = {
            "hosts": "all",
            "gather_facts": False,
            "vars": {name: value for name, value in given.items() if value is not None},
            "tasks": [{"ansible.builtin.import_role": role}],
        }
        book = self.scratch / "play.yml"
        book.write_text(json.dumps([play]), encoding="utf-8")
        told = {"TEST_LOOKUPS": str(self.asked), "TEST_TOKEN": token}
        told.update({"ANSIBLE_CALLBACKS_ENABLED": callback} if callback else {})
        told.update({} if pipelining else {"ANSIBLE_PIPELINING": "0"})
        return controller.playbook(
            str(self.scratch), self.inventory, str(book), *arguments, as_json=as_json, variables=told
        )

    def role(self, *arguments: str, token: str = TOKEN, **variables: Any) -> Ran:
        """The same, as what it left."""
        return Ran(self.run(*arguments, token=token, **variables))

    def traces(self, *secrets: str) -> list[str]:
        """The files of the host, and of the controller's own, that have one of the secrets in them."""
        found = []
        for top in (self.host.tree, str(self.scratch / "ansible")):
            for folder, _folders, names in os.walk(top):
                for name in names:
                    path = os.path.join(folder, name)
                    if not os.path.isfile(path) or os.path.islink(path):
                        continue
                    content = Path(path).read_bytes()
                    found += [path for secret in secrets if secret.encode() in content]
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def states(status: dict[str, Any]) -> dict[str, str]:
    return {unit["unit"]: unit["state"] for unit in status["units"]}


def last(ran: Ran) -> dict[str, Any]:
    """The status that the role kept as a fact."""
    found: dict[str, Any] = ran.results("set_fact")[-1]["ansible_facts"]["bcd_converge_status"]
    return found


@pytest.mark.parametrize("how", ["single", pytest.param("tasks", marks=newest_core)])
def test_a_join_that_is_due_looks_its_token_up_once_and_a_converged_host_does_not(site: Site, how: str) -> None:
    first = site.role(mode=how, node_id="node_01", site="fra")
    assert first.rc == 0, first.text
    assert site.lookups() == [REFERENCE]
    assert states(last(first)) == {"sysctl": "converged", "k8s-join": "converged"}
    assert (last(first)["changed"], last(first)["section"]["state"]) == (True, "CONVERGED")
    assert first.custom == {HOST: {}}
    assert site.host.read("/etc/gate/names") == "node_01 fra\n"
    second = site.role(mode=how)
    assert (second.rc, site.lookups()) == (0, [REFERENCE]), second.text
    assert second.recap == ({"ok": 1} if how == "single" else {"ok": 2, "skipped": 1})


def test_nothing_shows_the_token_when_it_is_right_or_wrong(site: Site) -> None:
    for token, rc in ((WRONG, 2), (TOKEN, 0)):
        ran = site.run("-vvvv", "--diff", token=token, as_json=False)
        assert ran.rc == rc, ran.out
        shown = ran.out + ran.err
        parts = (token, token.rpartition(".")[2])
        assert [part for part in parts if part in shown] == []
        assert ("Invalid value" in shown) == (token == WRONG)  # what the program said is told, without the token
        assert site.traces(*parts) == []
        assert site.traces("sh -c") != []  # the search finds what is there: the journal of programs


def test_the_token_reaches_the_host_in_no_file(site: Site) -> None:
    """Not even where Ansible copies modules to files, with their options in them."""
    ran = site.run(pipelining=False, as_json=False)
    assert ran.rc == 0, ran.out
    assert site.host.read("/etc/gate/found") == ""


def test_a_token_that_opens_nothing_ends_in_a_report_and_a_right_one_mends_it(site: Site) -> None:
    ran = site.role(token=WRONG, units={**SECTION, "cpu": {"isolate": "1"}})
    assert ran.rc == 2
    (report,) = ran.results("fail")
    assert 'token: Invalid value: "********"' in report["msg"].replace('***"', '********"').replace("*" * 13, "*" * 8)
    assert "reboot the node" in report["msg"]
    assert states(last(ran))["k8s-join"] == "progressing"
    assert (last(ran)["failed"], last(ran)["msg"]) == (True, report["msg"])
    assert "reboot the node" in ran.custom[HOST]["cpu"]
    assert site.role(units={**SECTION, "cpu": {"isolate": "1"}}).rc == 0


@pytest.mark.parametrize("how", ["single", pytest.param("tasks", marks=newest_core)])
def test_without_the_variable_the_message_names_it_and_the_reference(site: Site, how: str) -> None:
    ran = site.role(mode=how, join_token=None, fail_on="never")
    assert ran.rc == 2
    (report,) = ran.results("fail")
    assert "bcd_converge_join_token is not defined" in report["msg"]
    assert REFERENCE in report["msg"]
    # What was done before stands, and is told.
    assert states(last(ran)) == {"sysctl": "converged", "k8s-join": "progressing"}
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"


def test_a_lookup_that_fails_says_why(site: Site) -> None:
    ran = site.role(token="down")
    assert ran.rc == 2
    assert "the vault is sealed" in ran.results("fail")[0]["msg"]
    assert last(ran)["secrets_needed"] == [REFERENCE]


@newest_core
def test_what_is_looked_up_has_to_be_a_string(site: Site) -> None:
    ran = site.role(join_token={"data": {"token": TOKEN}})
    assert ran.rc == 2
    said = f"secrets: '{REFERENCE}' is a mapping, and a secret is a string: see by what it is looked up"
    assert ran.results("fail")[0]["msg"] == said
    assert TOKEN not in ran.text


def test_a_check_plans_the_join_and_looks_nothing_up(site: Site) -> None:
    ran = site.role("--check", join_token=None, fail_on="progressing")
    assert (ran.rc, ran.recap, site.lookups()) == (0, {"ok": 1, "changed": 1}, []), ran.text
    assert ran.status["secrets_needed"] == [REFERENCE]
    (join,) = [unit for unit in ran.status["units"] if unit["unit"] == "k8s-join"]
    assert [step["action"] for step in join["steps"]] == ["open the gate"]


def test_what_is_not_due_yet_or_not_applied_looks_nothing_up(site: Site) -> None:
    site.host.remove("/etc/gate/ready")
    waits = site.role()
    assert (waits.rc, waits.recap, site.lookups()) == (0, {"ok": 1, "changed": 1}, []), waits.text
    site.host.write("/etc/gate/ready", "")
    some = site.role(only=["sysctl"])
    assert (some.rc, some.recap, site.lookups()) == (0, {"ok": 1}, []), some.text


@newest_core
def test_secrets_that_are_given_from_the_start_work_in_one_task(site: Site) -> None:
    ran = site.role(secrets={REFERENCE: TOKEN}, join_token=None)
    assert (ran.rc, ran.recap) == (0, {"ok": 1, "changed": 1}), ran.text
    assert TOKEN not in ran.text


@newest_core
@pytest.mark.parametrize(
    "section",
    [
        {"units": {"k8s-join": {}}},
        {"units": '{"k8s-join": {}}'},
        {"units": None, "wire_units": [{"unit": "k8s-join", "settings": "{}"}]},
    ],
)
def test_a_join_without_a_reference_goes_by_token(site: Site, section: dict[str, Any]) -> None:
    ran = site.role(**section)
    assert (ran.rc, site.lookups()) == (0, ["token"]), ran.text


@newest_core
def test_the_section_as_it_travels_names_the_reference(site: Site) -> None:
    wire = [{"unit": "k8s-join", "settings": json.dumps({"joinTokenRef": REFERENCE})}]
    ran = site.role(units=None, wire_units=wire)
    assert (ran.rc, site.lookups()) == (0, [REFERENCE]), ran.text


@newest_core
def test_a_host_gets_no_secret_but_its_own(site: Site) -> None:
    """A host that was taken over asks for another secret than its section names."""
    unit = site.collection / "plugins" / "module_utils" / "units" / "k8s_join.py"
    unit.write_text(unit.read_text("utf-8").replace('settings.get("joinTokenRef")', '"vault:root"'), encoding="utf-8")
    ran = site.role()
    assert (ran.rc, site.lookups()) == (2, [])
    assert "needs the secret 'vault:root'" in ran.results("fail")[0]["msg"]


@newest_core
@pytest.mark.parametrize(
    ("token", "said"),
    [
        (TOKEN, ["one-01  converged  sysctl, k8s-join  -"]),
        (WRONG, ["one-01  failed", "token: Invalid value"]),
        ("down", ["one-01  failed", "the vault is sealed"]),
    ],
)
def test_the_pass_report_tells_what_the_hidden_task_came_to(site: Site, token: str, said: list[str]) -> None:
    ran = site.run(token=token, as_json=False, callback="bettercompute.bcd.pass_report")
    report = ran.out.partition("PASS REPORT")[2]
    assert report, ran.out
    assert [text for text in said if text not in report] == [], report
    assert token == "down" or token not in ran.out


@newest_core
def test_a_unit_that_failed_keeps_no_join_back(site: Site) -> None:
    units = {**SECTION, "kernel-modules": {"load": ["no_such_module"]}}
    for how in ("single", "tasks"):
        ran = site.role(mode=how, units=units)
        assert ran.rc == 2
        assert "cannot load the module no_such_module" in ran.results("fail")[0]["msg"]
        assert site.host.read("/etc/gate/open") == ""
        site.host.remove("/etc/gate/open")
