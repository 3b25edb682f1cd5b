# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an ordinary account's modules send to bcd helper, what they make of its answers, and whom they trust with it.

The server is a real socket with an answer for each op; `tests/sim/test_helper.py` has the helper itself.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import local_socket
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given, Secret
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import opening, request, staged, through_helper
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.holds import holds_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.info import info_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.options import DEVICES, HOST
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.section import section_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.single import Asked, unit_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.canonical import canonical
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import SOCKET
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.catalog import unit

TOKEN = "abcdef.0123456789abcdef"
PARTS = (TOKEN, "0123456789abcdef")
REFERENCE = "vault:gpu-pool"
JOIN = {"apiServer": "https://10.0.0.1:6443", "joinTokenRef": REFERENCE}
UNIT = {
    "unit": "sysctl",
    "changed": True,
    "state": "converged",
    "pending": [],
    "reboot_required": False,
    "conditions": [],
    "steps": [{"action": "write /etc/sysctl.d/90-bcd.conf", "disruption": "none", "done": True}],
    "notes": [],
    "diff": [],
}
SECTION = {
    "changed": False,
    "units": [],
    "unconverged": [],
    "todo": [],
    "secrets_needed": [],
    "reboot_required": False,
    "section": {"state": "CONVERGED", "message": "", "observed_generation": None, "conditions": []},
    "diff": [],
    "ansible_stats": {"data": {}, "per_host": False, "aggregate": True},
}
HOLDS = {"unit": "devices", "changed": False, "state": "converged", "events": [], "steps": [], "diff": []}
INFO = {"changed": False, "ansible_facts": {"bcd": {"kernel": "6.8.0-88-generic", "unreadable": []}}}
REFUSAL = {"msg": "op host.unit: no field x", "reason": "Refused", "retryable": False, "changed": False}
UNIT_KEYS = {*UNIT, "msg", "reason", "retryable"}


def everything(peer: socket.socket) -> bytes:
    return b"".join(iter(functools.partial(peer.recv, 65_536), b""))


class Server:
    """A helper whose answers a test gives: by op, bytes or what is sent as JSON; what it was asked."""

    def __init__(self, folder: str) -> None:
        self.path = f"{folder}/helper.sock"
        self.answers: dict[str, Any] = {"file.write": {"changed": True}}
        self.asked: list[dict[str, Any]] = []
        self.late = 0.0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(8)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _address = self._listener.accept()
            except OSError:
                return
            with peer:
                asked = everything(peer)
                if not asked:  # it connected, and thought better of it
                    continue
                self.asked.append(json.loads(asked))
                time.sleep(self.late)
                answer = self.answers.get(self.asked[-1]["op"], b"")
                peer.sendall(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def ops(self) -> list[str]:
        """The ops of the requests so far."""
        return [request["op"] for request in self.asked]

    def close(self) -> None:
        """Listen no more; the socket's file stays."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory in the place of /run/bcd, to an account that is not root: to it this test's files are root's."""
    place = tempfile.mkdtemp(prefix="bcd-")  # a socket's path is short
    Path(place).chmod(0o755)
    mine, real = os.getuid(), Host.file

    def file(self: Host, path: str) -> Any:
        seen = real(self, path)
        return seen._replace(uid=0) if seen is not None and seen.uid == mine else seen

    monkeypatch.setattr(Host, "uid", lambda _self: 1000)
    monkeypatch.setattr(Host, "file", file)
    monkeypatch.setattr(opening, "SOCKET", f"{place}/helper.sock")
    monkeypatch.setattr(through_helper, "SOCKET", f"{place}/helper.sock")
    monkeypatch.setattr(through_helper, "ABOVE", ("/", place))
    monkeypatch.setattr(local_socket, "exchange", functools.partial(local_socket.exchange, owner=mine))
    yield place
    shutil.rmtree(place)


@pytest.fixture
def helper(folder: str) -> Iterator[Server]:
    server = Server(folder)
    yield server
    server.close()


def sysctl(check_mode: bool = False, settings: Any = None, **more: Any) -> dict[str, Any]:
    asked = Asked({"vm.swappiness": 10} if settings is None else settings, **more)
    return unit_result(unit("sysctl"), asked, check_mode)


def options(**more: Any) -> dict[str, Any]:
    """Of host_section, as Ansible fills them in."""
    given = dict.fromkeys(HOST)
    return {**given, "units": {}, "max_disruption": "gpu", "fail_on": "failed", "fail_on_secrets": False, **more}


def hold_options(**more: Any) -> dict[str, Any]:
    return {**dict.fromkeys(DEVICES), "assignments": [], "max_disruption": "gpu", **more}


# -- what is sent, and that what comes back is the module's result


@pytest.mark.parametrize("check", [False, True])
def test_a_unit_is_one_request_and_its_answer_the_result(helper: Server, check: bool) -> None:
    helper.answers["host.unit"] = UNIT
    assert sysctl(check, given=Given({}, "node_01", "fra"), max_disruption="none") == UNIT
    assert helper.asked == [
        {
            "op": "host.unit",
            "unit": "sysctl",
            "settings": {"vm.swappiness": 10},
            "signed_spec": None,
            "max_disruption": "none",
            "check": check,
            "node_id": "node_01",
            "site": "fra",
        }
    ]


def test_a_removal_has_null_and_a_signed_spec_alone_has_no_settings(helper: Server) -> None:
    helper.answers["host.unit"] = UNIT
    unit_result(unit("sysctl"), Asked(None), False)
    sysctl(settings={}, signed_spec={"body": "e30="})
    assert [(asked["settings"], asked["signed_spec"]) for asked in helper.asked] == [
        (None, None),
        ({}, {"body": "e30="}),
    ]
    assert {(asked["node_id"], asked["site"]) for asked in helper.asked} == {(None, None)}


@pytest.mark.parametrize(("check", "plans"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_section_is_one_request_without_secrets(helper: Server, check: bool, plans: bool) -> None:
    helper.answers["host.section"] = SECTION
    units = {"sysctl": {"vm.swappiness": 10}}
    assert section_result(options(units=units, generation=3, label="one"), check, plans) == SECTION
    assert helper.asked == [
        {
            "op": "host.section",
            "units": units,
            "wire_units": None,
            "known": None,
            "generation": 3,
            "only": None,
            "plans": plans,
            "fail_on": "failed",
            "fail_on_secrets": False,
            "label": "one",
            "node_id": None,
            "site": None,
            "signed_spec": None,
            "max_disruption": "gpu",
            "check": check,
        }
    ]


def test_devices_are_one_request(helper: Server) -> None:
    helper.answers["devices"] = HOLDS
    assignments: list[Any] = [{"allocation_id": "a1", "binding": "exclusive", "devices": [], "env": None}]
    assert holds_result(hold_options(assignments=assignments, generation=2), True) == HOLDS
    assert helper.asked == [
        {
            "op": "devices",
            "assignments": assignments,
            "generation": 2,
            "passthrough": None,
            "instances": None,
            "max_cdi_version": None,
            "slot_count": None,
            "acknowledge": None,
            "signing_key": None,
            "node_id": None,
            "signed_spec": None,
            "max_disruption": "gpu",
            "check": True,
        }
    ]


def test_facts_are_roots(helper: Server) -> None:
    helper.answers["host.info"] = INFO
    assert info_result() == INFO
    assert helper.asked == [{"op": "host.info"}]


def test_a_failure_of_the_pass_is_the_modules(helper: Server) -> None:
    failure = {**UNIT, "changed": False, "state": "progressing", "reason": "StepFailed", "retryable": True, "msg": "no"}
    helper.answers.update({"host.unit": failure, "host.section": {**SECTION, "msg": "no"}})
    assert sysctl() == failure
    assert section_result(options(), False) == {**SECTION, "msg": "no"}


def test_root_asks_nobody(helper: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "uid", lambda _self: 0)
    assert sysctl(True)["unit"] == "sysctl"
    assert section_result(options(), True)["section"]["state"] in {"CONVERGED", "PROGRESSING", "FAILED"}
    assert info_result()["changed"] is False
    assert helper.asked == []


def test_an_answer_may_be_long_and_late(helper: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "CONNECTS", 0.2)
    helper.late = 1.0
    helper.answers["host.unit"] = {**UNIT, "notes": ["x" * 1000] * 8000}
    assert sysctl() == helper.answers["host.unit"]


# -- answers that are none


def failing(result: dict[str, Any]) -> tuple[Any, ...]:
    assert set(result) == UNIT_KEYS
    return result["msg"], result["reason"], result["retryable"], result["state"], result["changed"]


def test_a_refusal_of_the_request_has_every_key_of_the_module(helper: Server) -> None:
    helper.answers.update(dict.fromkeys(("host.unit", "host.section", "devices", "host.info"), REFUSAL))
    assert failing(sysctl()) == (REFUSAL["msg"], "Refused", False, "failed", False)
    section = section_result(options(units={"sysctl": {}}), False)
    assert {*SECTION, "msg"} - {"ansible_facts"} <= set(section)
    assert (section["msg"], section["section"]["state"]) == (REFUSAL["msg"], "FAILED")
    assert [one["reason"] for one in section["units"]] == ["Refused"]
    devices = holds_result(hold_options(), False)
    assert set(HOLDS) < set(devices)
    assert (devices["msg"], devices["reason"], devices["retryable"]) == (REFUSAL["msg"], "Refused", False)
    seen = info_result()["ansible_facts"]["bcd"]
    assert seen["unreadable"][0] == f"as root: {REFUSAL['msg']}"
    assert seen["kernel"]


@pytest.mark.parametrize("retryable", [True, False])
def test_a_request_that_failed_may_be_tried_again_where_the_helper_says_so(helper: Server, retryable: bool) -> None:
    helper.answers["host.unit"] = {"msg": "busy", "reason": "StepFailed", "retryable": retryable, "changed": False}
    state = "progressing" if retryable else "failed"
    assert failing(sysctl()) == ("busy", "StepFailed", retryable, state, False)


@pytest.mark.parametrize("answer", [b"", json.dumps(UNIT).encode()[:-20], b"\xff\xfe", b"[" * 100_000])
def test_a_helper_that_hangs_up_half_way_fails_the_task(helper: Server, answer: bytes) -> None:
    helper.answers["host.unit"] = answer
    message, *rest = failing(sysctl())
    assert rest == ["StepFailed", True, "progressing", False]
    why = "gave no whole answer" if answer else "hung up before it had answered"
    assert message == f"bcd helper {why}: see journalctl -u bcd-helper.service for the reason, and run again"


@pytest.mark.parametrize(
    "answer",
    [
        [],
        "converged",
        7,
        None,
        {},
        {"msg": ""},
        {"msg": 7, "reason": "Refused"},
        SECTION,
        *({name: value for name, value in UNIT.items() if name != left} for left in UNIT),
        *({**UNIT, name: 7} for name in UNIT),
    ],
)
def test_what_is_no_result_is_not_taken_for_one(helper: Server, answer: Any) -> None:
    helper.answers["host.unit"] = answer
    message, *rest = failing(sysctl())
    assert rest == ["StepFailed", False, "failed", False]
    assert message == (
        "what bcd helper answers to host.unit is no result of it: bring helper and collection to one version (role "
        "bcd_helper)"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(UNIT_KEYS)), inner, max_size=12),
    max_leaves=24,
)


@settings(max_examples=150, deadline=None)
@given(answer=st.binary(max_size=64) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_answers_a_task_ends_with_its_keys(answer: bytes) -> None:
    """Of any bytes, and of any JSON with keys of a result and what else they may be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Host, "uid", lambda _self: 1000)
        patch.setattr(opening, "SOCKET", __file__)
        patch.setattr(through_helper, "ABOVE", ())
        patch.setattr(through_helper, "SOCKET", "/nowhere")
        patch.setattr(local_socket, "exchange", lambda _path, _data: answer)
        result = sysctl()
    assert set(result) >= set(UNIT)
    assert {name: type(result[name]) for name in UNIT} == {name: type(value) for name, value in UNIT.items()}
    assert "msg" in result or json.loads(answer) == result


# -- nobody there, and somebody else


def test_a_directory_that_only_the_group_may_look_into_says_who_gets_in(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def file(_self: Host, path: str) -> Any:
        raise Unreadable(f"cannot read {path}: Permission denied", denied=True)

    monkeypatch.setattr(Host, "file", file)
    message, reason, *_rest = failing(sysctl())
    assert reason == "StepFailed"
    assert message == (
        "bcd helper does not take this account, which is not in the group of /run/bcd/helper.sock: have root add it to "
        "the group bcd, and log in anew"
    )


def test_a_socket_without_a_listener_says_what_to_start(helper: Server) -> None:
    helper.close()
    message, *rest = failing(sysctl())
    assert rest == ["StepFailed", True, "progressing", False]
    assert message.startswith(f"nothing listens on {helper.path}: ")
    assert "start it" in message


def test_without_a_helper_units_say_node_unprivileged_and_check_mode_plans(folder: str) -> None:
    assert os.listdir(folder) == []
    message, *rest = failing(sysctl())
    assert rest == ["StepFailed", True, "progressing", False]
    assert message == (
        "node-unprivileged: this account is not root, and bcd helper, which would be root for it, does not run here: "
        "set become: true, or enroll the host with its helper (where it has one, have root start bcd-helper.socket)"
    )
    assert "msg" not in sysctl(True)
    assert "msg" in section_result(options(units={"sysctl": {}}), False)


def test_without_a_helper_holds_say_whose_they_are(folder: str) -> None:
    result = holds_result(hold_options(), False)
    assert "this account is not root, and holds are root's: set become: true" in result["notes"]


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_nothing_is_sent_where_another_account_could_have_laid_the_socket(helper: Server, mode: int) -> None:
    above = os.path.dirname(helper.path)
    Path(above).chmod(mode)
    message, *rest = failing(sysctl())
    assert rest == ["Refused", False, "failed", False]
    assert message == (
        f"{above} is not a directory only root can write, and what is sent to {helper.path} is for root alone: make it "
        "root's, writable by no one else"
    )
    assert helper.asked == []


def test_every_directory_above_the_socket_is_looked_at() -> None:
    assert tuple(str(above) for above in reversed(Path(SOCKET).parents)) == through_helper.ABOVE


def test_nothing_is_sent_below_a_directory_that_is_a_link(helper: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.path.dirname(helper.path) + "/link"
    os.symlink(os.path.dirname(helper.path), link)
    monkeypatch.setattr(through_helper, "ABOVE", ("/", link))
    assert failing(sysctl())[0].startswith(f"{link} is not a directory only root can write")
    assert helper.asked == []


def test_nothing_is_sent_to_a_socket_of_another_account(helper: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Host.file

    def file(self: Host, path: str) -> Any:
        seen = real(self, path)
        return seen and (seen._replace(uid=1000) if path == helper.path else seen)

    monkeypatch.setattr(Host, "file", file)
    message, *rest = failing(sysctl())
    assert rest == ["Refused", False, "failed", False]
    assert message == (
        f"{helper.path} belongs to uid 1000, and what is sent there is for root alone: have root remove it, and "
        "restart bcd-helper.socket"
    )
    assert helper.asked == []


def test_no_token_is_sent_to_a_server_of_another_account(helper: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the files look like: the kernel says who listens."""
    other = os.getuid() + 1
    monkeypatch.setattr(local_socket, "exchange", functools.partial(local_socket.exchange, owner=other))
    message, reason, *_rest = failing(joined())
    assert (f"uid {os.getuid()} answers on {helper.path}" in message, reason) == (True, "StepFailed")
    assert helper.asked == []


# -- the token of a join


def joined(check_mode: bool = False, **said: Any) -> dict[str, Any]:
    """What k8s_join returns, with its token; `settings` of another join, None for none."""
    given = Given({REFERENCE: Secret(TOKEN)}, option="token")
    return unit_result(unit("k8s-join"), Asked(said.get("settings", JOIN), given=given), check_mode)


LAID = {"op": "file.write", "kind": "k8s-token", "id": None, "content": TOKEN}
TAKEN = {**LAID, "content": None}


def test_the_token_is_laid_before_and_taken_away_after(helper: Server) -> None:
    helper.answers["host.unit"] = {**UNIT, "unit": "k8s-join"}
    joined()
    assert (helper.asked[0], helper.ops(), helper.asked[2]) == (LAID, ["file.write", "host.unit", "file.write"], TAKEN)
    assert TOKEN not in json.dumps(helper.asked[1])


@pytest.mark.parametrize("answer", [b"", REFUSAL, {**UNIT, "msg": "no"}])
def test_the_token_is_taken_away_after_a_pass_that_failed(helper: Server, answer: Any) -> None:
    helper.answers["host.unit"] = answer
    assert joined()["msg"]
    assert helper.asked[2] == TAKEN


def test_a_token_that_is_not_taken_ends_it(helper: Server) -> None:
    helper.answers["file.write"] = {**REFUSAL, "msg": f"no room for {TOKEN}"}
    assert failing(joined())[:2] == ("no room for ***", "Refused")
    assert helper.ops() == ["file.write"]


@pytest.mark.parametrize("reason", ["Refused", "StepFailed"])
def test_what_failed_does_not_show_it_either(helper: Server, reason: str) -> None:
    helper.answers["host.unit"] = {"msg": f"no: {TOKEN}", "reason": reason, "retryable": False, "changed": False}
    assert failing(joined())[:2] == ("no: ***", reason)
    helper.answers["file.write"] = {"msg": f"full: {TOKEN}", "reason": reason, "retryable": False, "changed": False}
    assert failing(joined())[:2] == ("full: ***", reason)


def test_nothing_that_comes_back_shows_the_token(helper: Server) -> None:
    helper.answers["host.unit"] = {**UNIT, "notes": [f"kubeadm said: {TOKEN}"], "found": {PARTS[1]: [TOKEN]}}
    shown = json.dumps(joined())
    assert [part for part in PARTS if part in shown] == []
    assert "kubeadm said: ***" in shown
    helper.answers["host.section"] = {**SECTION, "msg": f"token: Invalid value: {TOKEN!r}"}
    shown = json.dumps(section_result(options(units={"k8s-join": JOIN}, secrets={REFERENCE: TOKEN}), False))
    assert [part for part in PARTS if part in shown] == []


def test_check_mode_and_plans_and_removals_lay_nothing(helper: Server) -> None:
    helper.answers.update({"host.unit": UNIT, "host.section": SECTION})
    given = options(units={"k8s-join": JOIN}, secrets={REFERENCE: TOKEN})
    joined(check_mode=True)
    joined(settings=None)
    section_result(given, True)
    section_result(given, False, plans=True)
    section_result({**given, "only": ["sysctl"]}, False)
    assert set(helper.ops()) == {"host.unit", "host.section"}
    assert TOKEN not in json.dumps(helper.asked)


def signed(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """A spec that names one unit. Who signed it is for root to see."""
    host = [{"unit": name, "settings": canonical(settings)}]
    text = canonical({"kind": "DesiredState", "node_id": "node_01", "generation": 1, "host": host})
    body, signature = (base64.b64encode(value).decode() for value in (text.encode(), b"x"))
    return {"body": body, "signature": signature, "certificates": ["-----BEGIN CERTIFICATE-----"]}


@pytest.mark.parametrize(
    ("section", "reference"),
    [
        ({"units": {"k8s-join": JOIN}}, REFERENCE),
        ({"units": {"k8s-join": {}}}, "token"),
        ({"units": None, "wire_units": [{"unit": "k8s-join", "settings": json.dumps(JOIN)}]}, REFERENCE),
        ({"units": None, "signed_spec": signed("k8s-join", JOIN)}, REFERENCE),
        ({"units": {"k8s-join": JOIN}, "signed_spec": signed("sysctl", {})}, REFERENCE),
    ],
)
def test_a_section_lays_the_one_that_its_join_refers_to(
    helper: Server, section: dict[str, Any], reference: str
) -> None:
    helper.answers["host.section"] = SECTION
    secrets = {reference: TOKEN, "another": "fedcba.fedcba9876543210"}
    section_result(options(**section, secrets=secrets), False)
    assert helper.asked[::2] == [LAID, TAKEN]
    assert "fedcba" not in json.dumps(helper.asked)
    helper.asked.clear()
    section_result(options(**section, secrets={"another": TOKEN}), False)
    assert helper.ops() == ["host.section"]


@pytest.mark.parametrize(
    "section",
    [
        {"units": {"sysctl": {}}},
        {"units": {"k8s-join": None}},
        {"units": {"k8s-join": {"joinTokenRef": 7}}},
        {"units": None, "wire_units": [{"unit": "k8s-join", "settings": "{"}]},
        {"units": None, "wire_units": [{"unit": "k8s-join", "settings": "{}"}] * 2},
        {"units": None, "signed_spec": {"body": "!"}},
    ],
)
def test_what_is_wrong_with_a_section_is_for_root_to_say(helper: Server, section: dict[str, Any]) -> None:
    helper.answers["host.section"] = SECTION
    assert section_result(options(**section, secrets={REFERENCE: TOKEN}), False) == SECTION
    assert helper.ops() == ["host.section"]


def test_a_secret_that_is_none_is_refused_as_to_root(helper: Server) -> None:
    result = section_result(options(secrets={REFERENCE: {"token": TOKEN}}), False)
    assert result["msg"] == (
        f"secrets: '{REFERENCE}' is a mapping, and a secret is a string: see by what it is looked up"
    )
    assert helper.asked == []


# -- both sides


def test_both_sides_have_the_same_fields_and_bounds(helper: Server) -> None:
    helper.answers.update({"host.unit": UNIT, "host.section": SECTION, "devices": HOLDS, "host.info": INFO})
    joined()
    section_result(options(), False)
    holds_result(hold_options(), False)
    info_result()
    for asked in helper.asked:
        assert set(asked) == {"op", *request.OPS[asked["op"]]}
        request.request(json.dumps(asked).encode())
    assert set(helper.ops()) == {"file.write", "host.unit", "host.section", "devices", "host.info"}
    assert staged.FILE == "/var/lib/bcd-hostconfig/k8s/bootstrap-token"


# -- requests that are never sent


def test_a_request_that_is_too_long_is_not_sent(helper: Server) -> None:
    settings = {"load": ["x" * 1024] * 2048}
    result = unit_result(unit("kernel-modules"), Asked(settings), False)
    message, *rest = failing(result)
    assert rest == ["Refused", False, "failed", False]
    assert "bytes, and bcd helper takes 2097152 in one request" in message
    assert helper.asked == []


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_has_no_word_for_is_not_sent(helper: Server, value: float) -> None:
    message, *rest = failing(sysctl(settings={"vm.swappiness": value}))
    assert rest == ["Refused", False, "failed", False]
    assert message.startswith("the options cannot be sent to bcd helper")
    assert helper.asked == []
