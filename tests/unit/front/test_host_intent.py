# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a signed spec asks of a host: told where it verifies, remembered nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import host_intent
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.host_intent import UNSEEN, intent_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from tests.pki import ControlPlane
from tests.unit.fake_host import FakeHost

PLANE = ControlPlane()
HELD: dict[str, Any] = {
    "allocation_id": "alloc_1",
    "binding": "BINDING_HOLD",
    "devices": [{"id": "GPU-1"}],
    "env": ["A=secret", "B="],
}
SPEC = PLANE.desired_state(generation=9, host={"sysctl": {"vm.swappiness": 10}}, devices=[HELD])


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """The machine that the module opens, whose root pins the root of PLANE."""
    host = FakeHost({CONFIG: PLANE.config()})
    assert issubclass(PredictedHost, Host)  # made from the class of the real one, before its name is another's
    monkeypatch.setattr(machine, "Host", lambda: host)
    monkeypatch.setattr(host_intent, "Host", lambda: host)
    return host


def test_what_it_asks_is_told_without_the_values_of_env_lines(host: FakeHost) -> None:
    assert intent_result(SPEC) == {
        "changed": False,
        "node_id": "node-1",
        "generation": 9,
        "units": {"sysctl": {"vm.swappiness": 10}},
        "devices": [{**HELD, "env": ["A=(not shown)", "B=(not shown)"]}],
    }
    assert host.calls == []


@pytest.mark.parametrize("env", ["A=secret", {"A": "secret"}, ["secret"], [{"A": "secret"}], [["A=secret"]]])
def test_an_env_that_is_none_is_not_shown_either(host: FakeHost, env: Any) -> None:
    """No host applies it; a signer that is not ours may have signed it."""
    told = intent_result(PLANE.desired_state(devices=[{**HELD, "env": env}]))
    assert (told["devices"][0]["allocation_id"], "secret" in str(told), host.calls) == ("alloc_1", False, [])


def test_what_is_not_managed_is_null(host: FakeHost) -> None:
    assert intent_result(PLANE.desired_state(devices=[]))["units"] is None
    assert intent_result(PLANE.desired_state(host={}))["devices"] is None
    assert host.calls == []


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (ControlPlane().desired_state(host={}), "is no root that this host trusts"),
        ({**SPEC, "signature": "AAAA"}, "the signature of signed_spec does not verify"),
        ({}, "signed_spec has no body"),
    ],
)
def test_what_this_host_does_not_take_is_refused(host: FakeHost, spec: Any, said: str) -> None:
    told = intent_result(spec)
    assert said in told.pop("msg")
    assert (told, host.calls) == ({"changed": False, "reason": "Refused", "retryable": False}, [])


def test_an_account_that_cannot_see_what_root_pins_says_nothing_of_it(host: FakeHost) -> None:
    host.user, host.unreadable = 1000, {CONFIG}
    told = intent_result(SPEC)
    assert told == {"changed": False, "reason": "StepFailed", "retryable": False, "msg": UNSEEN}
