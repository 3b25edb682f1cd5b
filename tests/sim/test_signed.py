# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signed specs by the real playbooks, roles and modules, on simulated hosts whose root pins a signer."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests import pki
from tests.sim import controller, fleet, test_role_secrets
from tests.sim.host import SimulatedHost
from tests.sim.marks import in_namespace
from tests.sim.test_role_converge import HOST, Ran, states
from tests.sim.tree import PROFILES

newest_core = pytest.mark.newest_core
FAILED = (2, 8)  # the latter of core 2.16, where a play is ended after a host has failed
CONFIG = "/etc/bcd/config.toml"
MEMORY = "/var/lib/bcd-hostconfig/helper-intent.json"
SYSCTL_FILE = "/etc/sysctl.d/90-bcd.conf"
SECTION = {"kernel-modules": {"load": ["tun"]}, "sysctl": {"vm.swappiness": 10}}
PLANE = pki.ControlPlane()
CONVERGE, PLAN = "bettercompute.bcd.converge", "bettercompute.bcd.plan"


class Site:
    """A host whose root pins the root of PLANE, unless its `config` says otherwise."""

    def __init__(self, scratch: Path, profile: str = "debian", config: str | None = None) -> None:
        self.scratch = scratch
        kinds = [fleet.Hosts("one", PROFILES[profile])]
        self.inventory = Path(fleet.make(str(scratch / "fleet"), kinds))
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / HOST))
        self.host.run("true")  # the first entry leaves what a later one mounts upon
        self.host.write(CONFIG, PLANE.config() if config is None else config, 0o640)
        self.host.forget_calls()

    def run(self, what: Any, *arguments: str, as_json: bool = True, **variables: Any) -> controller.Played:
        """Run a playbook by its name, or tasks, with the variables of the host, which may be template text."""
        inventory = json.loads(self.inventory.read_text("utf-8"))
        host = inventory["all"]["children"]["one"]["hosts"][HOST]
        inventory["all"]["children"]["one"]["hosts"][HOST] = {
            **{name: value for name, value in host.items() if not name.startswith("bcd_")},
            **variables,
        }
        self.inventory.write_text(json.dumps(inventory), encoding="utf-8")
        book = what
        if not isinstance(what, str):
            book = str(self.scratch / "play.yml")
            play = {"hosts": "all", "gather_facts": False, "tasks": what}
            Path(book).write_text(json.dumps([play]), encoding="utf-8")
        return controller.playbook(str(self.scratch), str(self.inventory), book, *arguments, as_json=as_json)

    def play(self, what: Any, *arguments: str, **variables: Any) -> Ran:
        """The same, as what it left."""
        return Ran(self.run(what, *arguments, **variables))

    def module(self, name: str, *arguments: str, **options: Any) -> dict[str, Any]:
        """The result of one module."""
        task = {f"bettercompute.bcd.{name}": options, "ignore_errors": True}
        (result,) = self.play([task], *arguments).results(f".{name}")
        return result


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def spec(generation: int = 1, **more: Any) -> dict[str, Any]:
    return PLANE.desired_state(**{"host": SECTION, **more}, generation=generation)


def test_a_signed_spec_alone_converges_a_host_and_the_second_run_costs_one_task(site: Site) -> None:
    signed = spec(generation=7)
    first = site.play(CONVERGE, bcd_converge_signed_spec=signed)
    assert (first.rc, first.recap) == (0, {"ok": 1, "changed": 1}), first.text
    assert states(first.status) == {"kernel-modules": "converged", "sysctl": "converged"}
    assert first.status["section"]["observed_generation"] == 7
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"
    second = site.play(CONVERGE, bcd_converge_signed_spec=signed)
    assert (second.rc, second.recap) == (0, {"ok": 1}), second.text


def test_a_check_plans_what_is_signed_and_remembers_nothing(site: Site) -> None:
    checked = site.play(CONVERGE, "--check", "--diff", bcd_converge_signed_spec=spec(generation=7))
    assert (checked.rc, checked.recap) == (0, {"ok": 1, "changed": 1}), checked.text
    assert [unit["changed"] for unit in checked.status["units"]] == [True, True]
    assert (site.host.changes(), site.host.read(MEMORY)) == ([], None)
    older = site.play(CONVERGE, bcd_converge_signed_spec=spec(generation=6))
    assert (older.rc, older.recap) == (0, {"ok": 1, "changed": 1}), older.text
    refused = site.play(CONVERGE, "--check", bcd_converge_signed_spec=spec(generation=5))
    assert (refused.rc in FAILED, "an older one is a rollback" in refused.text) == (True, True)


def test_unit_by_unit_what_is_signed_is_one_line_each(site: Site) -> None:
    first = site.play(CONVERGE, "-e", "bcd_converge_mode=tasks", bcd_converge_signed_spec=spec(generation=7))
    assert (first.rc, first.recap) == (0, {"ok": 3, "changed": 1}), first.text
    assert states(first.status) == {"kernel-modules": "converged", "sysctl": "converged"}
    assert first.status["section"]["observed_generation"] == 7
    second = site.play(CONVERGE, "-e", "bcd_converge_mode=tasks", bcd_converge_signed_spec=spec(generation=7))
    assert (second.rc, second.recap) == (0, {"ok": 2, "skipped": 1}), second.text


@pytest.mark.parametrize("how", ["single", "tasks"])
def test_nothing_unsigned_is_applied_where_root_pins_a_signer(site: Site, how: str) -> None:
    before = site.host.changes()
    ran = site.play(CONVERGE, "-e", f"bcd_converge_mode={how}", bcd_converge_units=SECTION, bcd_devices_assignments=[])
    assert ran.rc == 2
    said = (
        "command_root_sha256 in root's config.toml demands a signed spec, and none is given: nothing unsigned is "
        "applied: give signed_spec, which the module sign_spec makes (as bcd_converge_signed_spec to the playbooks)"
    )
    told = [result["msg"] for result in ran.results("fail") + ran.results("cdi_holds")]
    assert len(told) > 1
    assert set(told) == {said}
    assert (site.host.changes(), site.host.read(SYSCTL_FILE)) == (before, None)
    assert site.host.read("/proc/sys/vm/swappiness") == "60\n"


@newest_core
def test_a_spec_that_cannot_be_made_out_is_refused_by_the_host_in_a_sentence(site: Site) -> None:
    for wrong, said in (
        ({"body": "AAAA"}, "signed_spec has no signature"),
        ({**spec(), "body": "????"}, "signed_spec.body is no text in base64"),
        ({**spec(), "body": "e30="}, "the signature of signed_spec does not verify"),  # {}
        ("nonsense", "signed_spec"),
    ):
        for how in ("single", "tasks") if isinstance(wrong, str) else ("single",):
            ran = site.play(CONVERGE, "-e", f"bcd_converge_mode={how}", bcd_converge_signed_spec=wrong)
            told = [event["result"]["msg"] for event in ran.events["tasks"] if event["status"] == "failed"]
            assert (ran.rc in FAILED, [said in message for message in told]) == (True, [True] * len(told)), ran.text
            assert [message for message in told if "Error was" in message] == []
    assert site.host.changes() == []


@newest_core
def test_what_the_playbook_is_given_beside_has_to_be_what_is_signed(site: Site) -> None:
    same = site.play(CONVERGE, bcd_converge_units=SECTION, bcd_converge_generation=7, bcd_converge_signed_spec=spec(7))
    assert (same.rc, same.recap) == (0, {"ok": 1, "changed": 1}), same.text
    site.host.forget_calls()
    other = {**SECTION, "sysctl": {"vm.swappiness": 20}}
    ran = site.play(CONVERGE, bcd_converge_units=other, bcd_converge_signed_spec=spec(7))
    (report,) = ran.results("ansible.builtin.fail")
    assert report["msg"] == (
        "sysctl: vm.swappiness is 20 in the options and 10 in the signed spec: leave the options out, or have the spec "
        "signed with them"
    )
    ran = site.play(CONVERGE, bcd_converge_generation=8, bcd_converge_signed_spec=spec(7))
    assert "generation is 8 in the options and 7 in the signed spec" in ran.results("ansible.builtin.fail")[0]["msg"]
    assert (site.host.changes(), site.host.read("/proc/sys/vm/swappiness")) == ([], "10\n")


def test_the_plan_is_of_what_is_signed_and_changes_nothing(site: Site) -> None:
    ran = site.play(PLAN, bcd_converge_signed_spec=spec(generation=7))
    assert ran.rc == 0, ran.text
    report = json.loads((site.scratch / "bcd-report" / "fleet.json").read_text("utf-8"))
    assert report["hosts"][HOST]["drift"] == ["kernel-modules", "sysctl"]
    assert (site.host.changes(), site.host.read(MEMORY)) == ([], None)
    ran = site.play(PLAN, bcd_converge_units=SECTION)
    assert (ran.rc, "nothing unsigned is applied" in ran.text) == (2, True)


@newest_core
def test_a_reboot_is_proven_by_what_is_signed(site: Site) -> None:
    signed = spec(host={"cpu": {"isolate": "2-3"}})
    waits = site.play(CONVERGE, bcd_converge_signed_spec=signed)
    assert "reboot the node" in waits.custom[HOST]["cpu"]
    rebooted = site.play("bettercompute.bcd.reboot", bcd_converge_signed_spec=signed)
    assert (rebooted.rc, "every unit is converged" in rebooted.text) == (0, True), rebooted.text
    assert site.host.read("/sys/devices/system/cpu/isolated") == "2-3\n"


# -- holds


def hold(host: SimulatedHost, number: int = 1, **more: Any) -> dict[str, Any]:
    """An assignment of the host's first GPU."""
    (uuid, *_others) = [
        line.partition("UUID: ")[2].rstrip(")")
        for line in host.run("nvidia-smi", "-L").stdout.splitlines()
        if line.startswith("GPU ")
    ]
    return {"allocation_id": f"alloc_{number}", "binding": "BINDING_HOLD", "devices": [{"id": uuid}], **more}


@newest_core
def test_what_is_signed_is_held_and_released_by_the_playbook(tmp_path: Path) -> None:
    site = Site(tmp_path, "h100")
    wanted = hold(site.host, env=["TOKEN=5ecret-of-the-workload"])
    signed = spec(generation=4, host={}, devices=[wanted])
    first = site.play(CONVERGE, "-vvv", bcd_converge_signed_spec=signed)
    (held,) = first.results("cdi_holds")
    assert (first.rc, held["bound"], held["section"]["observed_generation"]) == (0, ["alloc_1"], 4), first.text
    assert "5ecret-of-the-workload" not in first.text
    assert site.host.read("/etc/cdi/bcd-alloc_1.json") is not None
    second = site.play(CONVERGE, bcd_converge_signed_spec=signed)
    assert (second.results("cdi_holds")[0]["kept"], second.recap) == (["alloc_1"], {"ok": 2, "skipped": 1})
    # Of devices alone: the host's configuration is not touched, nor planned.
    alone = spec(generation=5, host=None, devices=[])
    planned = site.play(PLAN, bcd_converge_signed_spec=alone)
    assert (planned.rc, planned.results("cdi_holds")[0]["released"]) == (0, ["alloc_1"]), planned.text
    for how in ("single", "tasks"):
        gone = site.play(CONVERGE, "--check", "-e", f"bcd_converge_mode={how}", bcd_converge_signed_spec=alone)
        assert (gone.rc, gone.results("cdi_holds")[0]["released"]) == (0, ["alloc_1"]), gone.text
        assert [result for result in gone.results("host_section") if "units" in result] == []
    gone = site.play(CONVERGE, bcd_converge_signed_spec=alone)
    assert (gone.rc, gone.results("cdi_holds")[0]["released"]) == (0, ["alloc_1"]), gone.text
    assert site.host.read("/etc/cdi/bcd-alloc_1.json") is None


def test_a_spec_without_devices_manages_no_hold_and_costs_the_playbook_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path, "h100")
    wanted = hold(site.host)
    site.play(CONVERGE, bcd_converge_signed_spec=spec(1, host={}, devices=[wanted]))
    ran = site.play(CONVERGE, bcd_converge_signed_spec=spec(2, host={}))
    assert (ran.rc, ran.recap) == (0, {"ok": 1}), ran.text
    assert site.host.read("/etc/cdi/bcd-alloc_1.json") is not None
    beside = site.play(CONVERGE, bcd_converge_signed_spec=spec(2, host={}), bcd_devices_assignments=[])
    (refused,) = beside.results("cdi_holds")
    assert "the signed spec has no devices, and manages no hold" in refused["msg"]
    site.host.forget_calls()
    other = {**wanted, "env": ["A=1"]}
    signed = spec(3, host={}, devices=[wanted])
    beside = site.play(CONVERGE, bcd_converge_signed_spec=signed, bcd_devices_assignments=[other])
    (refused,) = beside.results("cdi_holds")
    assert (beside.rc, refused["reason"]) == (2, "Refused")
    assert "assignments differ from the devices of the signed spec" in refused["msg"]
    assert [change for change in site.host.changes() if " /etc/" in change or " /run/" in change] == []


# -- the modules


@newest_core
def test_the_module_of_a_unit_takes_its_settings_from_what_is_signed(site: Site) -> None:
    assert site.module("sysctl", signed_spec=spec(1))["changed"] is True
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"
    assert site.module("sysctl", signed_spec=spec(1), values={"vm.swappiness": 10})["changed"] is False
    site.host.forget_calls()
    for options, said in (
        ({"values": {"vm.swappiness": 20}}, "vm.swappiness is 20 in the options and 10 in the signed spec"),
        ({"values": {"vm.swappiness": "10"}}, "vm.swappiness is '10' in the options and 10 in the signed spec"),
        ({"values": {"vm.swappiness": 10, "vm.dirty_ratio": 5}}, "vm.dirty_ratio is 5 in the options and not in"),
        ({"state": "absent"}, "sysctl is to be removed, and the signed spec names it"),
    ):
        result = site.module("sysctl", signed_spec=spec(1), **options)
        assert (result["reason"], said in result["msg"]) == ("Refused", True), result
    result = site.module("hugepages", signed_spec=spec(1), pages_2m=4)
    assert "the signed spec does not name hugepages" in result["msg"]
    assert site.module("sysctl", state="absent")["reason"] == "Refused"  # unsigned
    assert site.host.changes() == []
    without = spec(2, host={"kernel-modules": SECTION["kernel-modules"]})
    assert site.module("sysctl", "--check", signed_spec=without, state="absent")["changed"] is True
    assert site.module("sysctl", signed_spec=without, state="absent")["changed"] is True
    assert site.host.read(SYSCTL_FILE) is None


def edited(envelope: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """The envelope with another body under its signature."""
    body = base64.b64decode(envelope["body"]).decode()
    assert old in body
    return {**envelope, "body": base64.b64encode(body.replace(old, new).encode()).decode()}


ATTACKS = {
    "edited settings": (edited(spec(5), "10", "99"), "the signature of signed_spec does not verify"),
    "another generation": (edited(spec(5), ":5,", ":6,"), "the signature of signed_spec does not verify"),
    "an older generation": (spec(3), "the signed spec has generation 3, and this host has accepted 4"),
    "another content": (spec(4, host={}), "has generation 4, which this host has accepted with another content"),
    "another node": (spec(5, node_id="node-2"), "the signed spec is for the node node-2, and this host is node-1"),
    "another root": (pki.ControlPlane().desired_state(generation=5, host={}), "is no root that this host trusts"),
    "another role": (
        PLANE.desired_state(generation=5, host={}, signer=PLANE.root.worker(roles=["bcd://role/join"])),
        "does not have the role bcd://role/worker",
    ),
    "an expired certificate": (
        PLANE.desired_state(generation=5, host={}, signer=PLANE.root.worker(end=1_600_000_000)),
        "ended at 2020-09-13T12:26:40Z",
    ),
    "an unknown field": ({**spec(5), "more": 1}, "signed_spec has 'more', which is no field of it"),
    "no signature": ({**spec(5), "signature": ""}, "signed_spec.signature is no text in base64"),
    "for another purpose": (
        pki.envelope(pki.text(pki.desired_state_body("node-1", 5, {})), pki.JOIN_RESPONSE, PLANE.worker),
        "did not sign this body as a desired-state",
    ),
    "white space in the body": (
        pki.envelope(json.dumps(pki.desired_state_body("node-1", 5, {})), pki.DESIRED_STATE, PLANE.worker),
        "the signed spec is no canonical JSON",
    ),
}


@newest_core
def test_what_was_not_signed_for_this_host_now_changes_nothing(site: Site) -> None:
    site.module("host_section", signed_spec=spec(4))
    site.host.forget_calls()
    memory, swappiness = site.host.read(MEMORY), site.host.read("/proc/sys/vm/swappiness")
    others = ("host_plan", "host_intent", "sysctl", "cdi_holds")  # each takes its turn beside host_section
    tasks = [
        {"name": name, f"bettercompute.bcd.{module}": {"signed_spec": signed}, "ignore_errors": True}
        for number, (name, (signed, _said)) in enumerate(ATTACKS.items())
        for module in ("host_section", others[number % len(others)])
    ]
    ran = site.play(tasks)
    told = [(event["task"], event["result"].get("msg", "")) for event in ran.events["tasks"]]
    assert len(told) == len(tasks)
    assert [(name, said) for name, said in told if ATTACKS[name][1] not in said] == []
    assert (site.host.changes(), site.host.read(MEMORY)) == ([], memory)
    assert site.host.read("/proc/sys/vm/swappiness") == swappiness


@newest_core
def test_a_spec_is_of_no_use_where_root_pins_no_signer(tmp_path: Path) -> None:
    site = Site(tmp_path, config="")
    result = site.module("host_section", signed_spec=spec())
    assert (result["section"]["state"], "root pins no signer on this host" in result["msg"]) == ("FAILED", True)
    assert site.host.changes() == []
    assert site.module("host_section", units=SECTION)["section"]["state"] == "CONVERGED"


@newest_core
def test_roots_come_by_a_bundle_where_the_join_key_is_pinned(tmp_path: Path) -> None:
    site = Site(tmp_path, config=PLANE.config(roots=(), join=True))
    site.host.write("/var/lib/bcd-hostconfig/join-record.json", json.dumps(PLANE.join_response("node-1")), 0o600)
    assert site.module("host_section", units={})["section"]["state"] == "CONVERGED"  # this control plane signs nothing
    bare = site.module("host_section", signed_spec=spec(1))
    assert "it has no trust_bundle" in bare["msg"]
    added = PLANE.trust_bundle(2, [PLANE.root])
    assert site.module("host_section", signed_spec=spec(1, bundle=added))["section"]["state"] == "CONVERGED"
    unsigned = site.module("host_section", units=SECTION)
    assert "trust bundle 2, which this host accepted, has roots and demands a signed spec" in unsigned["msg"]
    next_root = pki.root("next")
    both, switched = PLANE.trust_bundle(3, [PLANE.root, next_root]), PLANE.trust_bundle(4, [next_root])
    for generation, bundle, signer in ((2, both, PLANE.worker), (3, both, next_root.worker()), (4, switched, None)):
        signed = spec(generation, bundle=bundle, signer=signer or next_root.worker())
        assert site.module("host_section", signed_spec=signed)["section"]["state"] == "CONVERGED"
    dropped = site.module("host_section", signed_spec=spec(5, bundle=switched))
    assert "is no root that this host trusts" in dropped["msg"]
    old = site.module("host_section", signed_spec=spec(5, bundle=both))
    assert "the trust bundle has version 3, and this host has accepted 4" in old["msg"]


@newest_core
def test_what_a_spec_asks_is_told_where_it_verifies_and_not_remembered(site: Site) -> None:
    held = {"allocation_id": "alloc_1", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-1"}], "env": ["A=secret"]}
    told = site.module("host_intent", signed_spec=spec(9, devices=[held]))
    assert (told["node_id"], told["generation"], told["units"], told["changed"]) == ("node-1", 9, SECTION, False)
    assert told["devices"] == [{**held, "env": ["A=(not shown)"]}]
    assert (site.host.changes(), site.host.read(MEMORY)) == ([], None)
    alone = site.module("host_intent", signed_spec=spec(1, host=None, devices=[]))
    assert (alone["units"], alone["devices"]) == (None, [])


@newest_core
def test_one_default_fits_every_module_of_the_collection(site: Site, tmp_path: Path) -> None:
    """An action group's defaults reach modules to which they mean nothing."""
    (tmp_path / "key.pem").write_text(PLANE.worker.private_pem, encoding="utf-8")
    signing = {"node_id": "node-1", "generation": 2, "host": {}, "certificates": PLANE.worker.chain}
    play = {
        "hosts": "all",
        "gather_facts": False,
        "module_defaults": {"group/bettercompute.bcd.all": {"signed_spec": spec(), "max_disruption": "service"}},
        "tasks": [
            {"bettercompute.bcd.host_section": {}},
            {"bettercompute.bcd.sysctl": {}},
            {"bettercompute.bcd.host_intent": {}},
            {"bettercompute.bcd.host_info": {}},
            {
                "bettercompute.bcd.sign_spec": {**signing, "private_key": str(tmp_path / "key.pem")},
                "delegate_to": "localhost",
            },
        ],
    }
    book = tmp_path / "defaults.yml"
    book.write_text(json.dumps([play]), encoding="utf-8")
    ran = site.play(str(book))
    assert (ran.rc, ran.recap["ok"]) == (0, 5), ran.text


# -- signing, by Ansible


@pytest.mark.parametrize("form", ["text", pytest.param("file", marks=newest_core)])
def test_a_play_signs_for_its_hosts_and_converges_them(site: Site, form: str) -> None:
    """And no output has a word of the key, however much is asked for."""
    key = site.scratch / "worker.key"
    key.write_text(PLANE.worker.private_pem, encoding="utf-8")
    (site.scratch / "chain.pem").write_text("".join(PLANE.worker.chain), encoding="utf-8")
    role = {"name": "bettercompute.bcd.bcd_converge", "rolespec_validate": False}
    tasks = [
        {
            "name": "Sign",
            "bettercompute.bcd.sign_spec": {
                "node_id": "{{ inventory_hostname }}",
                "generation": "{{ spec_generation }}",
                "host": SECTION,
                "private_key": str(key)
                if form == "file"
                else "{{ lookup('ansible.builtin.file', '" + str(key) + "') }}",
                "certificates": [str(site.scratch / "chain.pem")],
            },
            "delegate_to": "localhost",
            "become": False,
            "register": "signed",
        },
        {
            "ansible.builtin.import_role": role,
            "vars": {"bcd_converge_signed_spec": "{{ signed.envelope }}"},
        },
    ]
    for arguments, changed in ((("--check",), True), ((), True), ((), False)):
        ran = site.play(tasks, *arguments, spec_generation=3)
        assert (ran.rc, ran.status["changed"]) == (0, changed), ran.text
        assert ran.results("sign_spec")[0]["root_sha256"] == PLANE.root.digest
    played = site.run(tasks, "-vvvv", "--diff", as_json=False, spec_generation=4)
    assert played.rc == 0, played.out
    shown = played.out + played.err
    assert [line for line in PLANE.worker.private_pem.splitlines()[1:-1] if line in shown] == []
    assert base64.b64decode(json.loads(site.host.read(MEMORY) or "")["envelope"]["body"]).startswith(b'{"generation":4')


@newest_core
@pytest.mark.parametrize("lost", ["first line", "nothing"])
def test_a_key_that_cannot_be_used_is_not_shown_either(site: Site, lost: str) -> None:
    pem = PLANE.worker.private_pem
    wrong = pem.partition("\n")[2] if lost == "first line" else pem.replace("PRIVATE", "PUBLIC")
    options = {"node_id": "a", "generation": 1, "host": {}, "private_key": wrong, "certificates": PLANE.worker.chain}
    task = {"bettercompute.bcd.sign_spec": options, "delegate_to": "localhost"}
    played = site.run([task], "-vvvv", as_json=False)
    shown = played.out + played.err
    assert (played.rc, "private_key is no" in shown) == (2, True), shown
    # Ansible shows the line of a playbook in which a value stands, and a key is not to stand in one.
    result = shown.partition("fatal: ")[2]
    assert [line for line in pem.splitlines()[1:-1] if line in result] == []


# -- the token of a join


@in_namespace
@pytest.mark.parametrize("how", ["single", pytest.param("tasks", marks=newest_core)])
def test_the_signed_section_names_the_token_of_its_join(tmp_path: Path, how: str) -> None:
    site = test_role_secrets.Site(tmp_path)
    site.host.write(CONFIG, PLANE.config(), 0o640)
    signed = spec(3, host=test_role_secrets.SECTION)
    first = site.role(mode=how, units=None, signed_spec=signed)
    assert (first.rc, site.lookups()) == (0, [test_role_secrets.REFERENCE]), first.text
    last = test_role_secrets.last(first)
    assert (states(last)["k8s-join"], last["section"]["observed_generation"]) == ("converged", 3)
    second = site.role(mode=how, units=None, signed_spec=signed)
    assert (second.rc, site.lookups()) == (0, [test_role_secrets.REFERENCE]), second.text
    assert second.recap == ({"ok": 1} if how == "single" else {"ok": 2, "skipped": 1})
    assert site.traces(test_role_secrets.TOKEN) == []


@in_namespace
@newest_core
def test_a_host_gets_no_secret_but_the_one_that_is_signed_for_it(tmp_path: Path) -> None:
    """A host that was taken over asks for another, and for one where nothing can be made out."""
    site = test_role_secrets.Site(tmp_path)
    unit = site.collection / "plugins" / "module_utils" / "units" / "k8s_join.py"
    unit.write_text(unit.read_text("utf-8").replace('settings.get("joinTokenRef")', '"vault:root"'), encoding="utf-8")
    site.host.write(CONFIG, PLANE.config(), 0o640)
    ran = site.role(units=None, signed_spec=spec(3, host=test_role_secrets.SECTION))
    assert (ran.rc, site.lookups()) == (2, [])


# -- many hosts


def test_a_host_whose_spec_cannot_be_had_keeps_no_other_from_its_own(tmp_path: Path) -> None:
    kinds = [fleet.Hosts("one", PROFILES["debian"], 3)]
    inventory = Path(fleet.make(str(tmp_path / "fleet"), kinds))
    variables = json.loads(inventory.read_text("utf-8"))
    hosts = variables["all"]["children"]["one"]["hosts"]
    for name in hosts:
        host = SimulatedHost(str(tmp_path / "fleet" / "trees" / name))
        host.run("true")
        host.write(CONFIG, PLANE.config(), 0o640)
        hosts[name]["bcd_converge_signed_spec"] = spec(node_id=name)
    hosts["one-01"]["bcd_converge_signed_spec"] = "{{ lookup('ansible.builtin.file', '/nowhere') | from_json }}"
    inventory.write_text(json.dumps(variables), encoding="utf-8")
    played = controller.playbook(str(tmp_path), str(inventory), CONVERGE, as_json=True)
    stats = played.events()["stats"]
    assert {name: (told["ok"] > 0, told["failures"]) for name, told in stats.items() if name != "one-01"} == {
        "one-02": (True, 0),
        "one-03": (True, 0),
    }
    assert (played.rc in FAILED, stats["one-01"]["failures"]) == (True, 1)
    again = controller.playbook(str(tmp_path), str(inventory), CONVERGE, "--limit", "!one-01", as_json=True)
    assert {name: (told["ok"], told["skipped"]) for name, told in again.events()["stats"].items()} == {
        "one-02": (1, 0),
        "one-03": (1, 0),
    }
