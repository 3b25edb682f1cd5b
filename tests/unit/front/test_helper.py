# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""bcd helper plans what it is asked as root, by itself: what it does then, and all that it refuses, writing nothing."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.local_socket import Peer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import helper_service as helper
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import request, single
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER
from tests.gpu.fake import GpuHost
from tests.pki import ControlPlane
from tests.unit.fake_host import FakeHost
from tests.unit.hold_host import assign, hold_host, uuids

from .helped import CONFIG, DEVICES, PEER, SECTION, UNIT, ask, stand_in, untouched

DROP_IN = "/etc/sysctl.d/90-bcd.conf"
SWAPPINESS = "/proc/sys/vm/swappiness"
OUTSIDE = "host.unit: this host's configuration is managed outside bcd ([host] units = false in root's config.toml)"
HEADER = "[host]\nunits = true\n"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    return stand_in(
        monkeypatch, FakeHost({SWAPPINESS: "60\n", "/proc/sys/kernel/core_pattern": "core\n", CONFIG: HEADER})
    )


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    found = hold_host()
    found.put(CONFIG, HEADER)
    stand_in(monkeypatch, found)
    return found


# -- what is done


def test_a_sysctl_is_planned_again_and_applied_as_root(host: FakeHost) -> None:
    result = ask(UNIT, settings={"vm.swappiness": 10})
    assert (result["unit"], result["changed"], result["state"]) == ("sysctl", True, "converged")
    assert host.text(SWAPPINESS) == "10\n"
    assert "vm.swappiness = 10\n" in (host.text(DROP_IN) or "")
    assert ask(UNIT, settings={"vm.swappiness": 10})["changed"] is False


def test_a_check_changes_nothing_and_says_what_would_be(host: FakeHost) -> None:
    result = ask(UNIT, settings={"vm.swappiness": 10}, check=True)
    assert result["changed"] is True
    assert [entry["after_header"] for entry in result["diff"]] == [SWAPPINESS, DROP_IN]
    assert untouched(host)


@pytest.mark.parametrize("check", [True, False])
def test_what_not_everybody_may_read_is_not_shown(host: FakeHost, check: bool) -> None:
    host.files[DROP_IN] = File("# hunter2\n", 0o600)
    result = ask(UNIT, settings={"vm.swappiness": 10}, check=check)
    assert "hunter2" not in json.dumps(result)
    shown = next(entry for entry in result["diff"] if entry["before_header"] == f"{DROP_IN} (mode 0600)")
    assert shown["after_header"] == f"{DROP_IN} (mode 0644)"
    assert shown["before"] == "(not shown: not everybody may read this file)\n"
    assert shown["after"] == shown["before"] + "(and it differs)\n"


def test_a_clean_removes_the_drop_in(host: FakeHost) -> None:
    ask(UNIT, settings={"vm.swappiness": 10})
    result = ask(UNIT, settings=None)
    assert (result["changed"], result["state"]) == (True, "converged")
    assert host.text(DROP_IN) is None


def test_a_section_is_planned_and_applied_whole(host: FakeHost) -> None:
    plan = ask(SECTION, units={"sysctl": {"vm.swappiness": 10}}, plans=True)
    assert plan["todo"] == ["sysctl"]
    assert untouched(host)
    result = ask(SECTION, units={"sysctl": {"vm.swappiness": 10}}, generation=3, label="node-1")
    assert result["section"]["state"] == "CONVERGED"
    assert result["section"]["observed_generation"] == 3
    assert host.text(SWAPPINESS) == "10\n"
    assert list(result["ansible_stats"]["data"]["bcd_converge_reboot_required"]) == ["node-1"]
    assert ask(SECTION, units={})["changed"] is True
    assert host.text(DROP_IN) is None


def test_the_host_is_told_of(host: FakeHost) -> None:
    facts = ask({"op": "host.info"})["ansible_facts"]["bcd"]
    assert facts["boot_id"] == "first-boot"
    assert untouched(host)


@pytest.mark.parametrize("op", ["host.status", "host.doctor"])
def test_status_and_doctor_are_those_of_root(host: FakeHost, op: str) -> None:
    result = ask({"op": op})
    assert result["changed"] is False
    assert "msg" not in result or "fault of the collection" not in result["msg"]
    assert untouched(host)


def test_holds_are_planned_from_root_s_own_specification(gpus: GpuHost) -> None:
    gpu = uuids(gpus)[0]
    result = ask(DEVICES, assignments=[assign("alloc_1", gpu)], generation=1)
    assert result["bound"] == ["alloc_1"]
    assert json.loads(gpus.text("/etc/cdi/bcd-alloc_1.json") or "")["devices"][0]["name"] == gpu
    assert ask(DEVICES, assignments=[], generation=2)["released"] == ["alloc_1"]
    assert gpus.text("/etc/cdi/bcd-alloc_1.json") is None


# -- what is refused


@pytest.mark.parametrize("name", ["x" * 65, "../etc", "Sysctl", ""])
@pytest.mark.parametrize("settings", [{}, None], ids=["apply", "clean"])
def test_a_name_that_is_none_is_refused(host: FakeHost, name: str, settings: Any) -> None:
    result = ask(UNIT, unit=name, settings=settings)
    assert (result["reason"], result["retryable"], result["changed"]) == ("Refused", False, False)
    assert result["msg"].startswith(f"{name!r} is no name of a unit")
    assert untouched(host)


@pytest.mark.parametrize("settings", [{}, None], ids=["apply", "clean"])
def test_a_unit_that_there_is_none_of_is_refused(host: FakeHost, settings: Any) -> None:
    result = ask(UNIT, unit="sudoers", settings=settings)
    assert (result["reason"], result["state"], result["changed"]) == ("Refused", "failed", False)
    assert result["msg"].startswith("there is no unit 'sudoers': correct the name to one of kernel-modules, sysctl")
    assert untouched(host)


def test_a_key_that_runs_a_program_as_root_is_refused_and_nothing_written(host: FakeHost) -> None:
    result = ask(UNIT, settings={"kernel.core_pattern": "|/tmp/x", "vm.swappiness": 10})
    assert (result["reason"], result["retryable"], result["changed"]) == ("Refused", False, False)
    assert "kernel.core_pattern" in result["msg"]
    assert untouched(host)


@pytest.mark.parametrize("settings", [{"vm.swappiness": 10}, None], ids=["apply", "clean"])
def test_a_host_that_is_managed_outside_is_left_alone(host: FakeHost, settings: Any) -> None:
    host.put(DROP_IN, "vm.swappiness = 10\n")
    host.put(CONFIG, "[host]\nunits = false\n")
    assert ask(UNIT, settings=settings)["msg"] == OUTSIDE
    assert ask(SECTION, units={})["msg"] == OUTSIDE
    assert ask(DEVICES, assignments=[])["msg"] == OUTSIDE
    assert ask({"op": "file.write", "kind": "k8s-token", "id": None, "content": None})["msg"] == OUTSIDE
    assert untouched(host)


@pytest.mark.parametrize(
    ("mode", "uid", "regular"),
    [(0o664, 0, True), (0o644, 1000, True), (0o777, 0, False)],
    ids=["group", "owner", "link"],
)
def test_a_configuration_that_is_not_root_s_stops_each_request(
    host: FakeHost, mode: int, uid: int, regular: bool
) -> None:
    host.files[CONFIG] = File(HEADER, mode, uid, regular)
    told = f"{CONFIG} must be a regular file root owns that no one else can write"
    for sent in ({**UNIT, "settings": None}, {**SECTION, "units": {}}, {**DEVICES, "assignments": []}):
        assert ask(sent)["msg"] == told
    assert untouched(host)


def test_a_request_cannot_say_what_is_busy_or_allowed(gpus: GpuHost) -> None:
    """Nothing that is root's view or root's decision has a field, in whichever op."""
    known = {name for table in request.OPS.values() for name in table}
    words = ("busy", "allow", "pin", "root", "path", "secret")
    assert {name for name in known if any(word in name for word in words)} == {"fail_on_secrets"}
    for name in ("busy", "busy_gpus", "allowed_clusters", "secrets", "uid", "holds", "config"):
        for sent in ({**UNIT}, {**SECTION, "units": {}}, {**DEVICES, "assignments": []}):
            assert f"it has {name!r}, which is no field" in ask(sent, **{name: []})["msg"]
    assert untouched(gpus)


def test_a_gpu_that_a_hold_has_is_busy_whatever_is_asked(gpus: GpuHost) -> None:
    gpu = uuids(gpus)[0]
    ask(DEVICES, assignments=[assign("alloc_1", gpu)], generation=1)
    result = ask(UNIT, unit="mig-layout", settings={"layout": "all-1g.10gb"})
    assert [wait["reason"] for wait in result["pending"]] == ["Busy"]
    assert "alloc_1" in result["pending"][0]["message"]
    assert not gpus.machine.cards[0].devices()
    assert gpus.machine.cards[1].devices()


def test_a_cluster_that_root_does_not_allow_is_not_joined(host: FakeHost) -> None:
    settings = {"apiServer": "https://10.0.0.1:6443", "caCertSha256": "0" * 64, "joinTokenRef": "x"}
    result = ask(UNIT, unit="k8s-join", settings=settings)
    assert result["reason"] == "Refused"
    assert "joining a Kubernetes cluster needs [kubernetes] allowed_clusters in bcd's config" in result["msg"]
    assert untouched(host)


def test_nobody_adds_reports_that_nobody_reads(gpus: GpuHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "MOST_EVENTS", 3)
    wrong = [{"allocation_id": f"a{n}", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-0"}]} for n in range(3)]
    events = ask(DEVICES, assignments=wrong, generation=1)["events"]
    assert len(events) == 3
    gpus.calls.clear()
    told = ask(DEVICES, assignments=wrong, generation=2)
    assert told["reason"] == "Refused"
    assert told["msg"].startswith("3 events in /var/lib/bcd-hostconfig/events wait to be acknowledged, and bcd helper")
    assert untouched(gpus)
    ask(DEVICES, acknowledge=[event["id"] for event in events])
    assert len(ask(DEVICES, assignments=wrong, generation=2)["events"]) == 3


def test_no_other_key_signs_than_the_one_that_root_names(gpus: GpuHost) -> None:
    told = ask(DEVICES, assignments=[], signing_key="/etc/shadow", node_id="node-1")
    assert told["reason"] == "Refused"
    assert told["msg"].startswith("signing_key is '/etc/shadow', and bcd helper signs with no other key")
    gpus.put(CONFIG, f'signing_key = "/etc/bcd/node.key"\n{HEADER}')
    assert "signs with no other key" in ask(DEVICES, assignments=[], signing_key="/etc/shadow", node_id="n")["msg"]
    told = ask(DEVICES, assignments=[], signing_key="/etc/bcd/node.key", node_id="node-1")
    assert told["msg"].startswith("/etc/bcd/node.key is not there")
    assert untouched(gpus)


# -- where signing is demanded


@pytest.fixture
def plane(host: FakeHost) -> ControlPlane:
    found = ControlPlane()
    host.put(CONFIG, found.config())
    return found


def test_where_signing_is_demanded_nothing_unsigned_is_applied(host: FakeHost, plane: ControlPlane) -> None:
    for sent in (
        {**UNIT, "settings": {"vm.swappiness": 10}},
        {**UNIT, "settings": None},
        {**SECTION, "units": {"sysctl": {"vm.swappiness": 10}}},
        {**DEVICES, "assignments": []},
    ):
        told = ask(sent)
        assert "demands a signed spec, and none is given: nothing unsigned is applied" in told["msg"]
        assert all(unit["reason"] == "Refused" for unit in told.get("units", [told]))
    assert untouched(host)


def test_a_signed_unit_is_applied_from_the_spec_and_a_tampered_one_is_not(host: FakeHost, plane: ControlPlane) -> None:
    spec = plane.desired_state(node_id="node-1", generation=2, host={"sysctl": {"vm.swappiness": 10}})
    told = ask(UNIT, settings={"vm.swappiness": 11}, signed_spec=spec)
    assert told["reason"] == "Refused"
    assert "vm.swappiness is 11 in the options and 10 in the signed spec" in told["msg"]
    told = ask(UNIT, settings=None, signed_spec=spec)
    assert told["msg"].startswith("sysctl is to be removed, and the signed spec names it")
    assert host.text(SWAPPINESS) == "60\n"
    assert ask(UNIT, signed_spec=spec)["state"] == "converged"
    assert host.text(SWAPPINESS) == "10\n"
    older = plane.desired_state(node_id="node-1", generation=1, host={"sysctl": {"vm.swappiness": 20}})
    assert ask(UNIT, signed_spec=older)["reason"] == "Refused"
    other = plane.desired_state(node_id="node-2", generation=3, host={"sysctl": {"vm.swappiness": 20}})
    assert ask(SECTION, signed_spec=other)["section"]["state"] == "FAILED"
    assert host.text(SWAPPINESS) == "10\n"


def test_what_a_signed_spec_says_is_told(host: FakeHost, plane: ControlPlane) -> None:
    spec = plane.desired_state(node_id="node-1", generation=2, host={"sysctl": {"vm.swappiness": 10}})
    result = ask({"op": "host.intent", "signed_spec": spec, "check": False})
    assert (result["node_id"], result["generation"]) == ("node-1", 2)
    assert result["units"] == {"sysctl": {"vm.swappiness": 10}}
    assert untouched(host)


# -- the service


def test_a_fault_of_ours_is_an_answer(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(single, "unit_result", broken)
    told = ask(UNIT)
    assert (told["reason"], told["retryable"], told["changed"]) == ("StepFailed", False, False)
    assert told["msg"].startswith("bcd helper: KeyError")


def test_the_journal_has_a_line_for_each_request_and_no_word_of_it(
    host: FakeHost, capfd: pytest.CaptureFixture[str]
) -> None:
    ask(UNIT, settings={"vm.swappiness": 10})
    ask(UNIT, unit="k8s-join", settings={"sesame\n\x1b[2J": "sesame"}, check=True)
    ask(UNIT, unit="sesame\n")
    ask({"op": "sesame\nbcd helper: host.unit sysctl for uid 0: converged"})
    helper.answer(b"sesame\n", PEER)
    ask({"op": "file.write", "kind": "k8s-token", "id": None, "content": "abcdef.0123456789abcdef"})
    said = capfd.readouterr().err.splitlines()
    assert said == [
        "host.unit sysctl for uid 1000: converged, changed",
        "host.unit k8s-join (check) for uid 1000: Refused",
        "what is no request to bcd helper 0.1.0 for uid 1000: Refused",
        "what is no request to bcd helper 0.1.0 for uid 1000: Refused",
        "what is no request to bcd helper 0.1.0 for uid 1000: Refused",
        "file.write for uid 1000: done, changed",
    ]


def test_nothing_makes_two_lines_of_one(capfd: pytest.CaptureFixture[str]) -> None:
    helper.say("why\nhost.unit sysctl for uid 0: converged\r\x1b[2J\x85\u2028")
    assert capfd.readouterr().err == "why?host.unit sysctl for uid 0: converged??[2J??\n"


def test_a_journal_that_is_gone_keeps_nobody_from_an_answer(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def gone(descriptor: int, data: bytes) -> int:
        if descriptor == 2:
            raise BrokenPipeError
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", gone)
    assert ask(UNIT, settings={"vm.swappiness": 10})["state"] == "converged"


@pytest.mark.parametrize("unit", ORDER)
def test_every_unit_can_be_asked_for(host: FakeHost, unit: str) -> None:
    """Settings that no unit takes are refused by each, in the words that its module has."""
    told = ask(UNIT, unit=unit, settings={"no such setting": 1})
    assert told["unit"] == unit
    assert told["reason"] == "Refused"
    assert untouched(host)


# -- who is served


def test_root_and_members_of_the_group_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp

    monkeypatch.setattr(grp, "getgrnam", lambda name: grp.struct_group((name, "x", 990, [])))
    assert helper.admits(Peer(1, 0, 0, frozenset())) == ""
    assert helper.admits(Peer(1, 1000, 990, frozenset())) == ""
    assert helper.admits(Peer(1, 1000, 1000, frozenset((990,)))) == ""
    for stranger in (Peer(1, 1001, 1001, frozenset()), Peer(1, 1001, 1001, frozenset((0, 27)))):
        assert helper.admits(stranger) == (
            "uid 1001 is not root, nor in the group bcd: have root add the account to the group"
        )


def test_where_the_kernel_does_not_say_the_name_database_does(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd

    accounts = {1000: ("admin", 1000), 1001: ("guest", 1001), 1002: ("own", 990)}
    monkeypatch.setattr(grp, "getgrnam", lambda name: grp.struct_group((name, "x", 990, ["admin"])))

    def account(uid: int) -> pwd.struct_passwd:
        name, gid = accounts[uid]
        return pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh"))

    monkeypatch.setattr(pwd, "getpwuid", account)
    assert helper.admits(Peer(1, 1000, 1000)) == ""
    assert helper.admits(Peer(1, 1002, 4)) == ""
    assert helper.admits(Peer(1, 1001, 1001)).startswith("uid 1001 is not root")
    assert helper.admits(Peer(1, 1003, 1003)).startswith("uid 1003 is not root")


def test_without_the_group_root_alone_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp

    def missing(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(grp, "getgrnam", missing)
    assert helper.admits(Peer(1, 0, 0)) == ""
    assert helper.admits(Peer(1, 1000, 1000, frozenset((990,)))) != ""


# -- the start


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (None, f"{CONFIG} must be a regular file root owns that no one else can write, and it is not there"),
        (File("", 0o660), f"{CONFIG} must be a regular file root owns that no one else can write"),
        (File("", 0o640, 990), f"{CONFIG} must be a regular file root owns that no one else can write"),
        (File("", 0o777, regular=False), f"{CONFIG} must be a regular file root owns that no one else can write"),
        (File('command_root_sha256 = "abc"\n'), "command_root_sha256 has 'abc', and takes SHA-256 digests"),
        (File('join_signing_key_pin = "abc"\n'), "join_signing_key_pin is 'abc', and takes sha256/"),
        (
            File('[kubernetes]\nallowed_clusters = "https://a"\n'),
            "allowed_clusters in /etc/bcd/config.toml has the entry",
        ),
        (File("what is this\n"), f"{CONFIG} line 1: 'what is this' is no table"),
    ],
)
def test_a_configuration_that_is_not_as_it_must_be_keeps_it_from_starting(
    host: FakeHost, config: File | None, why: str
) -> None:
    host.files.pop(CONFIG)
    if config is not None:
        host.files[CONFIG] = config
    with pytest.raises(Refused) as refused:
        helper.refuse_to_start(host)
    assert why in refused.value.message


@pytest.mark.parametrize("directory", ["/etc", "/etc/bcd"])
def test_a_directory_above_it_that_others_can_write_does_too(host: FakeHost, directory: str) -> None:
    host.files[directory] = File("", 0o775, regular=False)
    with pytest.raises(Refused) as refused:
        helper.refuse_to_start(host)
    assert refused.value.message.startswith(f"{directory} is not a directory only root can write")


def test_a_sound_configuration_lets_it_start(host: FakeHost) -> None:
    helper.refuse_to_start(host)
    host.put(CONFIG, "[host]\nunits = false\n")
    helper.refuse_to_start(host)


def test_it_is_root_s(host: FakeHost, capfd: pytest.CaptureFixture[str]) -> None:
    host.user = 1000
    assert helper.serve() == 1
    assert capfd.readouterr().err == (
        "bcd helper does not start: it is root's side of other accounts, and this account is not root: systemd starts "
        "it\n"
    )


@pytest.mark.parametrize(
    "given", [{}, {"LISTEN_FDS": "1"}, {"LISTEN_PID": "own", "LISTEN_FDS": "2"}, {"LISTEN_PID": "1"}]
)
def test_it_takes_its_socket_from_systemd_alone(
    host: FakeHost, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    for name in ("LISTEN_PID", "LISTEN_FDS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, str(os.getpid()) if value == "own" else value)
    assert helper.serve() == 1
    assert capfd.readouterr().err == (
        "bcd helper does not start: systemd has handed it no socket: run systemctl start bcd-helper.socket, which "
        "starts it\n"
    )


def test_every_op_is_answered_whatever_the_host_is(host: FakeHost) -> None:
    """A host that can be asked nothing, and settings of every kind: an answer each, and nothing of ours breaks."""
    kinds: tuple[Any, ...] = ({}, None, {"a": None}, {"load": [[]]}, {"layout": {"x": {"y": []}}}, {"": ""})
    for unit, settings, check in itertools.product(ORDER, kinds, (True, False)):
        told = ask(UNIT, unit=unit, settings=settings, check=check)
        assert "fault of the collection" not in told.get("msg", "")
