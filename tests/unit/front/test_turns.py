# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units' turns: none holds back another, and it ends when it is quiet."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Done, Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Pending, Plan, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.some_turns import take_some
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.section import Turn
from tests.unit.fake_host import FakeHost, Program
from tests.unit.shelf import Shelf


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def ask(*names: str, text: str = "x") -> list[Turn]:
    return [Turn(name, {"text": text}) for name in names]


def take(turns: list[Turn], shelf: Shelf, host: FakeHost | PredictedHost, ceiling: str = "gpu") -> dict[str, Outcome]:
    return take_turns(turns, shelf, host, Records(host), ceiling)


def states(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {name: outcome.state for name, outcome in outcomes.items()}


def changes(host: FakeHost) -> list[str]:
    """What was changed, but for our records."""
    return [call for call in host.calls if "bcd-hostconfig" not in call]


def test_a_converged_host_is_looked_at_once(shelf: Shelf) -> None:
    for name in "abc":
        shelf.keeper(name)
    host = FakeHost({"/etc/a": "x", "/etc/b": "x", "/etc/c": "x"})
    outcomes = take(ask("a", "b", "c"), shelf, host)
    assert shelf.looks == ["a", "b", "c"]
    assert states(outcomes) == dict.fromkeys("abc", "converged")
    assert not any(outcome.changed for outcome in outcomes.values())


def test_a_unit_finds_what_those_before_it_brought_and_is_not_looked_at_again(shelf: Shelf) -> None:
    shelf.keeper("a")
    shelf.keeper("b", needs="/etc/a")
    outcomes = take(ask("a", "b"), shelf, FakeHost())
    assert states(outcomes) == {"a": "converged", "b": "converged"}
    # Each runner looks until its plan is empty; then a is looked at once more, since b changed the host after it.
    assert shelf.looks == ["a", "a", "b", "b", "a"]


def test_a_unit_that_waited_for_a_later_one_converges_in_the_same_pass(shelf: Shelf) -> None:
    shelf.keeper("a", needs="/etc/b")
    shelf.keeper("b", needs="/etc/c")
    shelf.keeper("c")
    host = FakeHost()
    outcomes = take(ask("a", "b", "c"), shelf, host)
    assert states(outcomes) == dict.fromkeys("abc", "converged")
    assert changes(host) == ["write /etc/c", "write /etc/b", "write /etc/a"]
    assert [outcome.pending for outcome in outcomes.values()] == [(), (), ()]
    assert all(outcome.changed for outcome in outcomes.values())


def test_a_prediction_takes_the_same_turns_and_changes_nothing(shelf: Shelf) -> None:
    shelf.keeper("a", needs="/etc/b")
    shelf.keeper("b")
    host = FakeHost()
    outcomes = take(ask("a", "b"), shelf, PredictedHost(host))
    assert [outcome.steps for outcome in outcomes.values()] == [
        (Done("write /etc/a", "none", False),),
        (Done("write /etc/b", "none", False),),
    ]
    assert states(outcomes) == {"a": "progressing", "b": "progressing"}
    assert [len(outcome.diff) for outcome in outcomes.values()] == [1, 1]
    assert host.calls == []


def test_what_a_later_unit_may_bring_is_known_after_it(shelf: Shelf) -> None:
    shelf.keeper("a", needs="/run/brought")
    shelf.caller("b", "bring", "/run/brought")
    outcomes = take(ask("a", "b"), shelf, PredictedHost(FakeHost()))
    assert outcomes["a"].steps == (Done("a: known after bring has run", "none", False, later=True),)
    assert (outcomes["a"].state, outcomes["a"].changed) == ("progressing", True)


def setter(shelf: Shelf, name: str, asks: str, *poisons: str) -> None:
    """A unit that asks a program, and runs another that makes the answers of some unknown; it waits for a reboot."""

    def look(host: Any, _settings: Any, _past: Any) -> str:
        return str(host.ask((asks,)).out)

    def plan(_settings: Any, now: str, _past: Any) -> Plan:
        effects = tuple(Effect("program", program, f"{name} has set it") for program in poisons)
        steps = () if now == "set" else (run(("set", name), f"set {name}", effects=effects),)
        return Plan(steps, (Pending("RebootRequired", f"{name}: reboot the node"),))

    shelf.units[name] = Unit(name, (), dict, look, plan, lambda _now, _past: Plan())


def asked(**said: str) -> PredictedHost:
    """A host on which each program says so."""
    return PredictedHost(FakeHost(programs={name: says(text) for name, text in said.items()}))


def says(text: str) -> Program:
    return lambda _host, _argv: Answer(0, text)


def test_what_is_known_after_a_unit_s_own_steps_is_no_line_of_its_next_turn(shelf: Shelf) -> None:
    setter(shelf, "a", "ask-a", "ask-a")
    shelf.keeper("b")
    outcomes = take(ask("a", "b"), shelf, asked(**{"ask-a": "not set"}))
    assert outcomes["a"].steps == (Done("set a", "none", False),)
    assert [wait.message for wait in outcomes["a"].pending] == ["a: reboot the node"]
    assert (outcomes["a"].state, outcomes["a"].changed, outcomes["b"].changed) == ("progressing", True, True)


def test_what_is_known_after_a_later_unit_s_steps_is_a_line(shelf: Shelf) -> None:
    setter(shelf, "a", "ask-a", "ask-a")
    setter(shelf, "b", "ask-b", "ask-a", "ask-b")
    outcomes = take(ask("a", "b"), shelf, asked(**{"ask-a": "set", "ask-b": "not set"}))
    assert outcomes["a"].steps == (Done("a: known after b has set it", "none", False, later=True),)
    assert outcomes["b"].steps == (Done("set b", "none", False),)


def test_a_failure_holds_back_no_other_and_is_not_tried_twice(shelf: Shelf) -> None:
    shelf.caller("a", "broken", "/run/never")
    shelf.keeper("b")
    host = FakeHost(programs={"broken": lambda _host, _argv: Answer(1, "", "out of order")})
    outcomes = take([*ask("a"), Turn("x", {}), Turn("b", {"text": "no"}), *ask("c")], shelf, host)
    assert changes(host) == ["broken"]
    assert {name: outcome.failure and outcome.failure.reason for name, outcome in outcomes.items()} == {
        "a": "StepFailed",
        "x": "Refused",
        "b": "Refused",
        "c": "Refused",
    }
    shelf.keeper("c")
    outcomes = take([*ask("a"), *ask("b", "c")], shelf, host)
    assert states(outcomes) == {"a": "progressing", "b": "converged", "c": "converged"}
    assert changes(host) == ["broken", "broken", "write /etc/b", "write /etc/c"]


def test_settings_that_came_refused_are_their_unit_s_failure(shelf: Shelf) -> None:
    shelf.keeper("a")
    shelf.keeper("b")
    outcomes = take([Turn("a", Refused("a: not JSON")), *ask("b")], shelf, FakeHost())
    assert outcomes["a"].failure is not None
    assert (outcomes["a"].failure.message, outcomes["a"].state) == ("a: not JSON", "failed")
    assert outcomes["b"].state == "converged"


def test_units_that_undo_each_other_are_found_out(shelf: Shelf) -> None:
    shelf.keeper("a", "/proc/sys/key")
    shelf.keeper("b", "/proc/sys/key")
    shelf.keeper("c")
    host = FakeHost()
    outcomes = take([*ask("a", text="0"), *ask("b", text="1"), *ask("c")], shelf, host)
    for one, other in (("a", "b"), ("b", "a")):
        failure = outcomes[one].failure
        assert failure is not None
        assert failure.message.startswith(
            f"{one}: not quiet after 5 turns: it and {other} change what the other has set"
        )
        assert failure.retryable
    assert states(outcomes) == {"a": "progressing", "b": "progressing", "c": "converged"}
    assert len(changes(host)) == 11


def test_two_turns_are_told_as_one(shelf: Shelf) -> None:
    """a keeps /etc/a, b overwrites it once: a's second write is told after its first."""
    shelf.keeper("a")
    shelf.keeper("b", "/etc/a")
    host = FakeHost()
    del shelf.units["b"]
    shelf.caller("b", "spoil", "/run/spoiled")

    def spoil(spoiled: FakeHost, _argv: tuple[str, ...]) -> Answer:
        spoiled.put("/etc/a", "spoiled")
        spoiled.put("/run/spoiled", "")
        return Answer(0, "")

    host.programs["spoil"] = spoil
    outcome = take(ask("a", "b"), shelf, host)["a"]
    assert outcome.steps == (Done("write /etc/a", "none", True),) * 2
    assert [(entry["before"], entry["after"]) for entry in outcome.diff] == [("", "x"), ("spoiled", "x")]
    assert (outcome.state, outcome.changed, outcome.differs) == ("converged", True, False)


def test_what_is_held_back_is_told_once(shelf: Shelf) -> None:
    shelf.keeper("a", disruption="service")
    shelf.keeper("b")
    outcome = take(ask("a", "b"), shelf, FakeHost(), "none")["a"]
    assert outcome.steps == (Done("write /etc/a", "service", False),)
    assert [wait.reason for wait in outcome.pending] == ["HeldBack"]
    assert outcome.state == "progressing"


# -- only


def only(shelf: Shelf, host: Any, *names: str) -> dict[str, Outcome]:
    turns = [Turn("z", leaves=True), *ask("a", "b", "c")]
    return take_some(turns, names, shelf, host, Records(host), "gpu")


@pytest.fixture
def some(shelf: Shelf) -> Shelf:
    for name in "abz":
        shelf.keeper(name)
    shelf.keeper("c", needs="/etc/a")
    return shelf


def test_only_the_named_units_are_applied_and_the_others_are_planned_over_them(some: Shelf) -> None:
    host = FakeHost({"/etc/z": "old"})
    outcomes = only(some, host, "b")
    assert changes(host) == ["write /etc/b"]
    assert [name for name, outcome in outcomes.items() if outcome.changed] == ["b"]
    assert {name: [line.done for line in outcome.steps] for name, outcome in outcomes.items()} == {
        "b": [True],
        "z": [False],
        "a": [False],
        "c": [False],
    }
    assert [entry["after_header"] for outcome in outcomes.values() for entry in outcome.diff] == ["/etc/b"]


def test_only_nothing_is_a_plan(some: Shelf) -> None:
    host = FakeHost()
    outcomes = only(some, host)
    assert changes(host) == []
    assert not any(outcome.changed for outcome in outcomes.values())


def test_only_in_a_prediction_changes_what_a_run_would(some: Shelf) -> None:
    host = FakeHost()
    outcomes = only(some, PredictedHost(host), "b")
    assert host.calls == []
    assert [name for name, outcome in outcomes.items() if outcome.changed] == ["b"]


def test_units_with_nothing_to_do_are_recorded_as_after_a_turn_of_their_own(some: Shelf) -> None:
    host = FakeHost({"/etc/a": "x"})
    Records(host).apply("z", {"text": "old"})
    only(some, host, "b")
    assert Records(host).applied() == {"a": {"text": "x"}, "b": {"text": "x"}}


def test_a_removal_that_waits_is_not_through_where_others_have_their_turn(some: Shelf) -> None:
    host = FakeHost({"/etc/a": "x"})
    waits = Plan(pending=(Pending("Busy", "z is held"),))
    some.units["z"] = some.units["z"]._replace(absent=lambda _now, _past: waits)
    Records(host).apply("z", {"text": "old"})
    outcomes = only(some, host, "b")
    assert [wait.reason for wait in outcomes["z"].pending] == ["Busy"]
    assert Records(host).applied()["z"] == {"text": "old"}


def test_what_waits_for_a_reboot_without_steps_is_recorded_in_this_boot(some: Shelf) -> None:
    said = "a: CPUs 1 are isolated from the next boot: reboot the node"
    some.keeper("a", reboot=said)
    some.keeper("c", reboot="c: waits once its file is there: reboot the node")
    host = FakeHost({"/etc/a": "x", "/etc/b": "x"})
    Records(host).need_reboot("b", "b: waited before: reboot the node")
    only(some, host)
    assert Records(host).reboot_reasons() == {"a": said}
    host.put("/proc/sys/kernel/random/boot_id", "another\n")
    only(some, host)
    assert (Records(host).reboot_reasons(), Records(host).rebooted_for()) == ({"a": said}, {})
    host.calls.clear()
    only(some, host)
    assert host.calls == []


def test_a_record_that_cannot_be_kept_is_that_unit_s_failure(some: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost({"/etc/a": "x"})

    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host, "write", full)
    outcomes = only(some, host)
    assert outcomes["a"].failure is not None
    assert outcomes["a"].failure.message == (
        "cannot write /var/lib/bcd-hostconfig/applied.json: No space left on device (free some space there)"
    )
