# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run is given beside the settings: from options to units, and what is said of a secret that is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import SLOT, Given, Secret
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.given import to_section, to_unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.unit.fake_host import FakeHost
from tests.unit.shelf import Shelf

TOKEN = "abcdef.0123456789abcdef"
REFERENCE = "vault:kubernetes/gpu-pool"
DOOR = "/etc/kubernetes/door"
NAMES = (
    "units",
    "wire_units",
    "known",
    "generation",
    "signed_spec",
    "secrets",
    "node_id",
    "site",
    "only",
    "label",
    "fail_on_secrets",
)


class Gates(FakeHost):
    """A machine whose gate opens to the token, and that keeps what the gate was told beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.programs["gate"] = lambda _host, argv: self._gate(argv)

    def _gate(self, argv: tuple[str, ...]) -> Answer:
        self.heard.append(" ".join((*argv[1:], self.stdin)))
        if self.stdin != TOKEN:
            return Answer(1, "", f"{self.stdin} opens nothing")
        self.put(DOOR, "open")
        return Answer(0, "")


@pytest.fixture(autouse=True)
def units(monkeypatch: pytest.MonkeyPatch) -> None:
    """k8s-join opens the gate as its settings ask; kernel-modules writes a file after which it is looked at again."""
    shelf = Shelf()
    shelf.keeper("kernel-modules", needs=DOOR)
    shelf.keeper("sysctl")

    def plan(settings: Any, opened: bool, past: Past) -> Plan:
        todo = Todo()
        if not opened:
            argv = ("gate", past.given.node_id, past.given.site)
            effects = (Effect("file", DOOR, "open"),)
            todo.add(run(argv, "open the gate", stdin=SLOT, secret=settings["reference"], effects=effects))
        return todo.plan()

    shelf.units["k8s-join"] = Unit(
        "k8s-join", (), lambda given: given, lambda host, _s, _p: host.exists(DOOR), plan, lambda _now, _past: Plan()
    )
    monkeypatch.setattr(catalog, "SHIPPED", {name: lambda name=name: shelf.units[name] for name in shelf.units})


SECTION = {"sysctl": {"text": "x"}, "k8s-join": {"reference": REFERENCE}}


def converge(host: Host, for_secrets: bool = False, **given: Any) -> dict[str, Any]:
    """The result of a pass."""
    params = {**dict.fromkeys(NAMES), "max_disruption": "gpu", "fail_on": "failed", "units": SECTION, **given}
    ended = section.converge_section(params, host, Records(host))
    return section.report(ended, params["fail_on"], params["only"], for_secrets=for_secrets)


def of(result: dict[str, Any], unit: str) -> dict[str, Any]:
    (found,) = [entry for entry in result["units"] if entry["unit"] == unit]
    return dict(found)


# -- a whole host


def test_a_section_says_which_secrets_it_needs_and_does_the_rest() -> None:
    host = Gates()
    waits = converge(host)
    assert (waits["secrets_needed"], waits["unconverged"]) == ([REFERENCE], ["k8s-join"])
    (wait,) = of(waits, "k8s-join")["pending"]
    assert wait["message"] == (
        f"k8s-join: open the gate needs the secret {REFERENCE!r}, which was not given: give it in secrets (with the "
        "role: bcd_converge_join_token) and run again"
    )
    assert ("msg" in waits, host.text("/etc/sysctl"), host.heard) == (False, "x", [])


def test_with_its_secret_and_names_it_converges_and_nothing_shows_the_secret() -> None:
    host = Gates()
    done = converge(host, secrets={REFERENCE: TOKEN, "other": "something else"}, node_id="node_01", site="fra")
    assert (done["section"]["state"], done["secrets_needed"]) == ("CONVERGED", [])
    assert host.heard == [f"node_01 fra {TOKEN}"]
    assert TOKEN not in repr((done, host.files, host.calls))
    again = converge(host)  # and needs none any more
    assert (again["changed"], again["secrets_needed"], len(host.heard)) == (False, [], 1)


def test_white_space_around_a_secret_is_none_of_it() -> None:
    host = Gates()
    assert converge(host, secrets={REFERENCE: f" {TOKEN}\r\n"})["section"]["state"] == "CONVERGED"
    assert to_unit({"token": f"{TOKEN}\n"}).secrets == {"token": Secret(TOKEN)}


def test_a_plan_says_that_it_will_be_needed_and_does_not_wait_for_it() -> None:
    host = Gates()
    for units in (SECTION, {**SECTION, "kernel-modules": {"text": "y"}}):  # there it has a second turn
        plan = converge(PredictedHost(host), units=units, fail_on="progressing")
        assert (plan["secrets_needed"], "msg" in plan) == ([REFERENCE], False)
        join = of(plan, "k8s-join")
        assert ([step["action"] for step in join["steps"]], join["pending"]) == (["open the gate"], [])
        assert [REFERENCE in note for note in join["notes"]] == [True]
    assert host.calls == []


def test_what_is_not_applied_needs_none() -> None:
    some = converge(Gates(), only=["sysctl"])
    assert (some["secrets_needed"], some["todo"]) == ([], ["k8s-join"])
    assert converge(Gates(), only=["k8s-join"])["secrets_needed"] == [REFERENCE]


def test_a_task_can_be_asked_to_fail_for_a_secret_and_for_nothing_else() -> None:
    fails = converge(Gates(), for_secrets=True, fail_on="never")
    begins = f"this task ends so that the next one can give {REFERENCE}, and goes on: "
    assert fails["msg"] == begins + fails["section"]["message"]
    assert "ansible_facts" not in fails
    assert "msg" not in converge(Gates(), for_secrets=True, units={"sysctl": {"text": "x"}})
    assert "msg" not in converge(Gates(), for_secrets=True, secrets={REFERENCE: TOKEN})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "null"),
        ("", "empty"),
        (" \n", "empty"),
        (123456789, "an integer"),
        ({"data": TOKEN}, "a mapping"),
        ([TOKEN], "a list"),
    ],
)
def test_a_secret_is_a_string(value: Any, said: str) -> None:
    host = Gates()
    refused = converge(host, secrets={REFERENCE: value})
    assert refused["msg"] == (
        f"secrets: {REFERENCE!r} is {said}, and a secret is a string: see by what it is looked up"
    )
    assert {unit["reason"] for unit in refused["units"]} == {"Refused"}
    assert TOKEN not in json.dumps(refused)
    assert host.calls == []


# -- one unit


def test_the_token_of_a_module_is_the_secret_that_its_settings_name() -> None:
    bare = {"token": TOKEN, "join_token_ref": None, "node_id": None, "site": None}
    assert to_unit(bare) == Given({"token": Secret(TOKEN)}, "", "", "token")
    named = {"token": TOKEN, "join_token_ref": REFERENCE, "node_id": "node_01", "site": "fra"}
    assert to_unit(named) == Given({REFERENCE: Secret(TOKEN)}, "node_01", "fra", "token")


@pytest.mark.parametrize("params", [{}, {"token": None, "join_token_ref": REFERENCE}, {"token": ""}])
def test_a_module_without_a_token_gives_none(params: dict[str, Any]) -> None:
    assert to_unit(params).secrets == {}


def test_a_section_without_any_gives_none() -> None:
    assert to_section(dict.fromkeys(NAMES)) == Given()
