# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The token of a join by bcd helper: laid for root alone, used once, gone once the machine has joined, told nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.front import staged
from tests.cluster.control_plane import TOKEN, Cluster
from tests.pki import ControlPlane
from tests.unit.fake_host import Killed
from tests.unit.kube_host import KubeHost

from .helped import CONFIG, SECTION, UNIT, ask, stand_in

FILE = "/var/lib/bcd-hostconfig/k8s/bootstrap-token"
LAY = {"op": "file.write", "kind": "k8s-token", "id": None}
SECRET = TOKEN.rpartition(".")[2]
JOIN = {**UNIT, "unit": "k8s-join"}
WIRE = {"units": None}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as found:
        found.token()
        yield found


@pytest.fixture
def host(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> KubeHost:
    found = KubeHost(cluster)
    stand_in(monkeypatch, found)
    return found


def lay(host: KubeHost, token: str = TOKEN) -> None:
    assert ask(LAY, content=token) == {"changed": True}
    assert host.files[FILE].mode == 0o600


def forms(host: KubeHost) -> dict[str, dict[str, Any]]:
    """The ways to ask for a join."""
    settings = host.settings()
    return {
        "unit": {**JOIN, "settings": settings},
        "section": {**SECTION, "units": {"k8s-join": settings}},
        "wire": {**SECTION, "wire_units": [{"unit": "k8s-join", "settings": json.dumps(settings)}]},
    }


def state(result: dict[str, Any]) -> str:
    found: str = result["section"]["state"] if "section" in result else result["state"].upper()
    return found


@pytest.mark.parametrize("form", ["unit", "section", "wire"])
def test_a_join_takes_the_token_that_was_laid_and_it_goes(
    host: KubeHost, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    lay(host)
    result = ask(forms(host)[form])
    assert state(result) == "CONVERGED", result
    assert host.text(FILE) is None
    assert (SECRET in json.dumps(result), SECRET in capfd.readouterr().err, host.holds(SECRET)) == (False, False, [])


@pytest.mark.parametrize("form", ["unit", "section", "wire"])
def test_without_one_the_join_waits_for_it(host: KubeHost, form: str) -> None:
    result = ask(forms(host)[form])
    assert state(result) == "PROGRESSING"
    assert "join-token" in json.dumps(result) or "token" in json.dumps(result)


def test_a_check_leaves_it(host: KubeHost) -> None:
    lay(host)
    calls = list(host.calls)
    for sent in forms(host).values():
        assert ask(sent, check=True)["changed"] is True
    assert ask(forms(host)["section"], plans=True)["todo"] == ["k8s-join"]
    assert host.text(FILE) == f"{TOKEN}\n"
    assert host.calls == calls


def test_a_check_over_a_member_leaves_it_too(host: KubeHost) -> None:
    lay(host)
    ask(forms(host)["unit"])
    lay(host)
    calls = list(host.calls)
    for sent in forms(host).values():
        assert state(ask(sent, check=True)) == "CONVERGED"
    assert ask(forms(host)["section"], plans=True)["todo"] == []
    ask({**JOIN, "settings": None}, check=True)
    assert host.text(FILE) == f"{TOKEN}\n"
    assert host.calls == calls


@pytest.mark.parametrize("is_member", [True, False])
@pytest.mark.parametrize("why", ["nothing is signed", "the host is not ours"])
def test_what_is_refused_leaves_it(host: KubeHost, why: str, is_member: bool) -> None:
    """A refusal writes nothing, whoever hopes for one that does."""
    if is_member:
        lay(host)
        ask(forms(host)["unit"])
    lay(host)
    config = host.text(CONFIG) or ""
    host.put(
        CONFIG, ControlPlane().config() + config if why == "nothing is signed" else "[host]\nunits = false\n" + config
    )
    calls = list(host.calls)
    for sent in (*forms(host).values(), {**JOIN, "settings": None}, {**SECTION, "units": {}}):
        assert "msg" in ask(sent)
    assert host.text(FILE) == f"{TOKEN}\n"
    assert host.calls == calls


def test_a_wrong_one_is_masked(host: KubeHost) -> None:
    wrong = f"{TOKEN.partition('.')[0]}.fedcba9876543210"
    lay(host, wrong)
    for sent in forms(host).values():
        result = ask(sent)
        assert state(result) != "CONVERGED"
        assert "fedcba9876543210" not in json.dumps(result)


def test_the_pass_after_one_that_was_killed_removes_it(host: KubeHost) -> None:
    lay(host)
    sent = forms(host)["unit"]
    number = len(host.calls)
    for at in range(number + 1, number + 200):
        host.kill_at = at
        try:
            ask(sent)
        except Killed:
            continue
        break
    host.kill_at = 0
    assert state(ask(sent)) == "CONVERGED"
    assert host.text(FILE) is None
    assert host.holds(SECRET) == []


def test_any_pass_over_a_member_removes_it(host: KubeHost) -> None:
    lay(host)
    ask(forms(host)["unit"])
    lay(host)
    ask(forms(host)["section"])
    assert host.text(FILE) is None


def test_a_machine_that_is_handed_back_keeps_none(host: KubeHost) -> None:
    lay(host)
    assert "msg" not in ask({**JOIN, "settings": None})
    assert host.text(FILE) is None


def test_a_signed_spec_says_for_what_it_is(host: KubeHost) -> None:
    plane = ControlPlane()
    host.put(CONFIG, plane.config() + (host.text(CONFIG) or ""))
    spec = plane.desired_state(node_id="node-1", generation=1, host={"k8s-join": host.settings()})
    lay(host)
    result = ask({**JOIN, "settings": {}, "signed_spec": spec})
    assert state(result) == "CONVERGED", result
    assert host.text(FILE) is None
    assert host.holds(SECRET) == []


@pytest.mark.parametrize("join", [None, "x", [], {"joinTokenRef": 5}, {"joinTokenRef": {"a": 1}}, 7])
def test_settings_that_are_none_get_none_or_are_others_to_refuse(host: KubeHost, join: Any) -> None:
    lay(host)
    assert staged.secrets(host, join) == {}


def test_a_section_that_is_none_has_no_join() -> None:
    assert staged.join_of({"units": {"sysctl": {}}}) is None
    assert staged.join_of({"wire_units": [{"unit": "k8s-join", "settings": "{"}]}) is not None
    assert staged.join_of({"units": None, "wire_units": [{"unit": "cpu", "settings": "{}"}] * 2}) is None
    assert staged.join_of({"signed_spec": {"body": "x"}}) is None
    assert staged.join_of({}) is None


@pytest.mark.parametrize("form", ["unit", "section", "wire"])
def test_one_that_the_cluster_does_not_take_makes_room_for_another(host: KubeHost, form: str) -> None:
    """As one does that a run left which was killed: else nobody would be asked for a new one."""
    lay(host, f"{TOKEN.partition('.')[0]}.{'f' * 16}")
    asked = forms(host)[form]
    said = ask(asked)
    assert "knows the bootstrap token by its id, and its secret is another" in json.dumps(said)
    assert FILE not in host.files
    again = ask(asked)
    assert "was not given" in json.dumps(again)
    lay(host)
    assert state(ask(asked)) == "CONVERGED"
