# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling reboot's budget and waves, and whole rollouts over fleets that fail and are interrupted, at any point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_budget import Limit, allowed, limit
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_seen import elsewhere, seen
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_waves import (
    DONE,
    FAILED,
    LEFT_OUT,
    STUCK,
    End,
    Outcome,
    Seen,
    ending,
    plan_waves,
    turns,
)
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_wishes import Wishes

# -- the budget


@pytest.mark.parametrize(
    ("value", "size", "most"),
    [(1, 200, 1), ("3", 200, 3), ("10%", 200, 20), ("10%", 9, 1), ("10%", 19, 1), ("34%", 3, 1), ("100%", 7, 7)],
)
def test_a_budget_is_a_number_or_a_percentage_rounded_down_and_at_least_one(value: Any, size: int, most: int) -> None:
    assert allowed(limit(value), size) == most


@pytest.mark.parametrize(
    "value",
    [0, -1, "0", "0%", "-1", "101%", "abc", "10 %", " 3", "3 ", "1.5", 1.5, True, None, "", "%", "\u0661", "3\n"],
)
def test_what_is_no_budget_is_refused_by_its_name(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^bcd_reboot_max_unavailable is .* give a number from 1 on"):
        limit(value)


# -- the plan


def due(name: str, **more: Any) -> Seen:
    return Seen(name, more.pop("pool", "p"), due=True, **more)


def planned(hosts: list[Seen], most: Limit) -> dict[str, Any]:
    """The plan where every host gives the same limit."""
    return plan_waves([one._replace(most=most) for one in hosts])


def test_waves_go_over_the_sites_in_turn_and_are_no_larger_than_the_room() -> None:
    hosts = [due(f"f{at}", site="fra") for at in range(4)] + [due(f"a{at}", site="ams") for at in range(2)]
    plan = planned(hosts, Limit(2))
    assert plan["waves"] == [["a0", "f0"], ["a1", "f1"], ["f2", "f3"]]
    assert plan["queue"] == ["a0", "f0", "a1", "f1", "f2", "f3"]
    assert plan["sizes"] == [2, 2, 2]


def test_pools_go_side_by_side_each_within_its_own_budget() -> None:
    hosts = [*(due(f"a{at}", pool="a") for at in range(2)), *(due(f"b{at}", pool="b") for at in range(20))]
    assert planned(hosts, Limit(10, True))["waves"][0] == ["a0", "b0", "b1"]


def test_hosts_elsewhere_take_room_and_have_no_turn() -> None:
    hosts = [due("one"), Seen("two", "p", reach=False, unavailable="cannot be looked at", stays=True, due=True)]
    plan = planned(hosts, Limit(1))
    assert plan["queue"] == []
    assert plan["left_out"] == {
        "one": "the pool p may do without 1 host at a time, and does already, without two (cannot be looked at): bring "
        "it back, or raise bcd_reboot_max_unavailable"
    }
    assert planned(hosts, Limit(2))["waves"] == [["one"]]


def test_a_fault_ends_its_pools_rollout_and_no_others() -> None:
    hosts = [due("one", fault="the record is damaged"), due("two"), due("other", pool="q")]
    plan = planned(hosts, Limit(5))
    assert plan["waves"] == [["other"]]
    assert plan["failed"] == {"one": "the record is damaged"}
    assert plan["left_out"] == {"two": "no host of the pool p is rebooted while one is as it is: the record is damaged"}


def test_proofs_go_before_reboots_and_what_is_gone_already_before_what_is_up() -> None:
    hosts = [
        due("fresh"),
        due("closed", cordoned=True, unavailable="its Node was cordoned by an earlier run"),
        Seen("rebooted", "p", done=True),
        Seen("left", "p", cordoned=True, unavailable="its Node was cordoned by an earlier run"),
    ]
    plan = planned(hosts, Limit(1))
    assert plan["waves"] == [["rebooted", "left"], ["closed"], ["fresh"]]
    assert plan["turns"] == {"rebooted": "prove", "left": "release", "closed": "reboot", "fresh": "reboot"}


def test_a_host_that_we_cordoned_and_that_may_not_begin_is_let_go() -> None:
    gone = Seen("gone", "p", reach=False, unavailable="cannot be looked at", stays=True)
    plan = planned([due("one", cordoned=True, unavailable="cordoned"), gone], Limit(1))
    assert plan["turns"] == {"one": "release"}
    assert list(plan["left_out"]) == ["one"]


def test_a_failure_ends_the_pools_rollout_and_the_others_go_on() -> None:
    hosts = [due("a1", pool="a"), due("a2", pool="a"), due("b1", pool="b"), due("b2", pool="b")]
    plan = planned(hosts, Limit(1))
    came = {"a1": Outcome(FAILED, "still required after the reboot: cpu: x", True), "b1": Outcome(DONE)}
    second = turns(plan, came, 1)
    assert second["b2"] == ("reboot", "")
    assert second["a2"] == ("", "the rollout of the pool a ended with a1: still required after the reboot: cpu: x")
    assert ending(plan, {**came, "b2": Outcome(DONE)}) == End(
        rebooted=["b1", "b2"],
        proved=["b1", "b2"],
        left_out={"a2": "the rollout of the pool a ended with a1: still required after the reboot: cpu: x"},
        failed={"a1": "still required after the reboot: cpu: x"},
        ended={"a": "a1"},
    )


def test_a_node_that_stays_cordoned_takes_room_and_ends_nothing() -> None:
    plan = planned([due(name) for name in ("one", "two", "three", "four")], Limit(2))
    assert plan["waves"] == [["one", "two"], ["three", "four"]]
    came = {"one": Outcome(STUCK, "its Node is not back", True), "two": Outcome(DONE)}
    taken = turns(plan, came, 1)
    assert taken["three"] == ("reboot", "")
    assert taken["four"].turn == ""
    assert "has to do without one (its Node is not back)" in taken["four"].reason


def test_a_host_that_had_no_turn_for_want_of_room_ends_nothing() -> None:
    plan = planned([due(name) for name in ("one", "two", "three", "four", "five", "six")], Limit(2))
    came = {"one": Outcome(STUCK, "its Node is not back", True), "two": Outcome(DONE), "three": Outcome(DONE)}
    last = turns(plan, came, 2)
    assert last["five"] == ("reboot", "")
    assert last["six"].reason == turns(plan, came, 1)["four"].reason
    end = ending(plan, {**came, "five": Outcome(DONE)})
    assert (end.ended, list(end.failed), list(end.left_out)) == ({}, ["one"], ["four", "six"])


def test_a_host_that_was_away_before_and_had_no_turn_still_takes_room() -> None:
    unready = [due(name, unavailable="its Node is not ready") for name in ("one", "two", "three", "four")]
    plan = planned([*unready, *(due(name) for name in ("five", "six", "seven"))], Limit(2))
    assert plan["waves"][:3] == [["one", "two"], ["three", "four"], ["five", "six"]]
    came = {"one": Outcome(STUCK, "its Node is not back", True), "two": Outcome(DONE), "three": Outcome(DONE)}
    assert [turn.turn for turn in turns(plan, came, 1).values()] == ["reboot", ""]
    assert [turn.turn for turn in turns(plan, came, 2).values()] == ["", ""]  # away are one and four
    assert "without one (its Node is not back), four (its Node is not ready)" in turns(plan, came, 2)["five"].reason


def test_a_proof_brings_no_host_back_whose_node_others_cordoned() -> None:
    proof = Seen("one", "p", done=True, unavailable="its Node n is cordoned by others", kept="others", stays=True)
    plan = planned([proof, due("two"), due("three")], Limit(1))
    assert (plan["turns"], list(plan["left_out"])) == ({"one": "prove"}, ["two", "three"])
    assert planned([proof, due("two"), due("three")], Limit(2))["waves"] == [["one"], ["two"], ["three"]]


def test_a_host_that_we_cordoned_is_let_go_where_the_rollout_ends_before_its_turn() -> None:
    closed = [
        due(name, cordoned=True, unavailable="its Node was cordoned by an earlier run") for name in ("one", "two")
    ]
    plan = planned(closed, Limit(1))
    assert turns(plan, {"one": Outcome(FAILED, "no return", True)}, 1)["two"] == (
        "release",
        "the rollout of the pool p ended with one: no return",
    )


def test_the_end_says_of_each_host_what_its_turn_came_to() -> None:
    plan = planned([due("one"), due("two"), Seen("three", "p", done=True), Seen("four", "p", cordoned=True)], Limit(2))
    came = {
        "one": Outcome(LEFT_OUT, "its pods do not go"),
        "two": Outcome(STUCK, "its Node is not back", True),
        "three": Outcome(DONE),
        "four": Outcome(DONE),
    }
    assert ending(plan, came) == End(
        rebooted=["two"],
        proved=["three", "two"],
        left_out={"one": "its pods do not go"},
        failed={"two": "its Node is not back"},
        ended={},
    )


def test_a_host_that_is_left_out_is_not_proved_either() -> None:
    plan = planned([due("one", done=True, kept="whether its Node is cordoned cannot be told")], Limit(1))
    assert (plan["turns"], list(plan["left_out"])) == ({}, ["one"])


def test_a_host_that_is_gone_takes_room_and_ends_nothing() -> None:
    gone = Seen("gone", "p", away="it cannot be looked at: x", unavailable="cannot be looked at", stays=True)
    plan = planned([gone, due("two"), due("three")], Limit(2))
    assert plan["waves"] == [["two"], ["three"]]
    assert (plan["pools"]["p"]["ended"], list(plan["failed"])) == ("", ["gone"])


def test_the_lowest_limit_that_a_pools_hosts_give_is_the_pools() -> None:
    hosts = [due(f"a{at}", pool="a", most=Limit(1)) for at in range(3)]
    hosts += [due(f"b{at}", pool="b", most=Limit(50, True)) for at in range(3)]
    hosts += [due("b3", pool="b", most=Limit(3)), Seen("b4", "b", reach=False, most=Limit(80, True))]
    plan = plan_waves(hosts)
    assert {pool: shown["allowed"] for pool, shown in plan["pools"].items()} == {"a": 1, "b": 2}
    assert plan["waves"][0] == ["a0", "b0", "b1"]


def test_a_host_that_goes_down_by_itself_is_not_let_go_meanwhile() -> None:
    going = due("one", cordoned=True, kept="it is going down by itself", unavailable="is going down", stays=True)
    held = due("two", cordoned=True, kept="held", unavailable="its Node n was cordoned by an earlier run")
    plan = planned([going, held], Limit(3))
    assert plan["turns"] == {"two": "release"}
    assert list(plan["left_out"]) == ["one", "two"]


def test_a_turn_without_an_outcome_counts_as_failed() -> None:
    plan = planned([due("one"), due("two")], Limit(1))
    assert turns(plan, {}, 1)["two"].reason.startswith("the rollout of the pool p ended with one")
    assert ending(plan, {}).failed == {"one": "it gave no answer"}


def test_only_pools_with_a_host_due_are_looked_through() -> None:
    waits = {"bcd_before": {"ansible_facts": {"bcd": {"reboot_reasons": {"cpu": "reboot the node"}}}}}
    variables: dict[str, dict[str, Any]] = {
        "a1": {"bcd_pool": "a", **waits},
        "a2": {"bcd_pool": "a"},
        "b1": {"bcd_pool": "b", "bcd_before": {"unreachable": True}},
        "b2": {"bcd_pool": "b"},
        "alone": {},
        "stranger": {},
    }
    assert elsewhere(["a1", "b1"], list(variables), ["a1", "b1"], variables) == ["a2"]
    variables["alone"].update(waits)
    assert elsewhere(["alone"], list(variables), ["alone", "stranger"], variables) == ["stranger"]
    assert elsewhere(["alone"], list(variables), ["alone"], variables) == []


# -- whole rollouts

FATES = ("well", "well", "well", "never back", "same boot", "still required", "others cordon", "stays cordoned")


@dataclass
class Machine:
    """A host as it really is."""

    name: str
    pool: str
    site: str
    reach: bool
    worker: bool
    fate: str
    due: bool
    rebooted: bool
    cordoned: str | None
    down: bool
    held: bool
    unready: bool = False
    reboots: int = 0

    @property
    def is_away(self) -> bool:
        return self.down or self.cordoned is not None or self.unready

    def look(self) -> dict[str, Any]:
        if self.down:
            return {"unreachable": True, "msg": "no route"}
        reasons = {"cpu": "cpu: reboot the node"}
        facts: dict[str, Any] = {
            "reboot_required": self.due,
            "reboot_reasons": reasons if self.due else {},
            "rebooted_for": reasons if self.rebooted and not self.due else {},
            "holds": [{"allocation_id": "a1"}] if self.held else [],
            "going_down": "",
            "node": {"name": self.name, "ready": not self.unready, "cordoned_by": self.cordoned} if self.worker else {},
        }
        return {"ansible_facts": {"bcd": facts}}


class Fleet:
    """Plays the playbook over machines; no pool is ever further down than it may be, or was in the beginning."""

    def __init__(self, machines: list[Machine], most: Limit) -> None:
        self.machines = {one.name: one for one in machines}
        self.most = most
        self.bound = {pool: max(self.allowed(pool), self.away(pool)) for pool in {one.pool for one in machines}}

    def allowed(self, pool: str) -> int:
        return allowed(self.most, sum(one.pool == pool for one in self.machines.values()))

    def away(self, pool: str) -> int:
        return sum(one.is_away for one in self.machines.values() if one.pool == pool)

    def check(self) -> None:
        for pool, bound in self.bound.items():
            assert self.away(pool) <= bound, pool

    def run(self, steps: int) -> End | None:
        """One run, killed after so many steps; None where it was."""
        variables = {
            one.name: {"bcd_pool": one.pool, "bcd_site": one.site, "bcd_before": one.look()}
            for one in self.machines.values()
        }
        reach = [one.name for one in self.machines.values() if one.reach]
        others = {name: variables[name]["bcd_before"] for name in elsewhere(reach, variables, variables, variables)}
        wishes = dict.fromkeys(variables, Wishes(most=self.most))
        plan = plan_waves(seen(reach, others, variables, wishes))
        outcomes: dict[str, Outcome] = {}
        for at in range(len(plan["waves"])):
            running = {
                name: self.turn(self.machines[name], turn.turn, outcomes)
                for name, turn in turns(plan, outcomes, at).items()
                if turn.turn
            }
            while running:  # side by side, as linear does it
                for name in list(running):
                    if steps == 0:
                        return None
                    steps -= 1
                    if next(running[name], "over") == "over":
                        del running[name]
                    self.check()
        return ending(plan, outcomes)

    def turn(self, one: Machine, turn: str, outcomes: dict[str, Outcome]) -> Iterator[str]:
        if turn == "reboot":
            if one.worker:
                if one.fate == "others cordon" and one.cordoned is None:
                    one.cordoned = "others"
                if one.cordoned == "others":
                    outcomes[one.name] = Outcome(LEFT_OUT, "cordoned by others", True)
                    return
                one.cordoned = "us"
                yield "cordoned"
            one.down = True
            yield "down"
            if one.fate == "never back":
                outcomes[one.name] = Outcome(FAILED, "timed out", True)
                return
            one.down = False
            if one.fate == "same boot":
                outcomes[one.name] = Outcome(FAILED, "the boot id is the same", True)
                return
            one.reboots += 1
            one.due, one.rebooted = False, True
            one.unready = one.unready and one.fate == "stays cordoned"
            yield "up"
        if turn != "release":
            if one.fate == "still required":
                outcomes[one.name] = Outcome(FAILED, "still required", True)
                return
            yield "proved"
        if one.unready or (one.cordoned == "us" and one.fate == "stays cordoned"):
            one.cordoned = None if one.cordoned == "us" and one.fate != "stays cordoned" else one.cordoned
            outcomes[one.name] = Outcome(STUCK, "its Node is not back", True)
            return
        one.cordoned = None if one.cordoned == "us" else one.cordoned
        outcomes[one.name] = Outcome(DONE)


@st.composite
def machines(draw: st.DrawFn) -> list[Machine]:
    found = []
    for at in range(draw(st.integers(1, 14))):
        worker = draw(st.booleans())
        found.append(
            Machine(
                name=f"h{at}",
                pool=draw(st.sampled_from(["", "p", "q"])),
                site=draw(st.sampled_from(["ams", "fra"])),
                reach=draw(st.integers(0, 4)) > 0,
                worker=worker,
                fate=draw(st.sampled_from(FATES)),
                due=draw(st.integers(0, 3)) > 0,
                rebooted=draw(st.integers(0, 5)) == 0,
                cordoned=draw(st.sampled_from([None, None, None, "us", "others"])) if worker else None,
                down=draw(st.integers(0, 9)) == 0,
                held=draw(st.integers(0, 9)) == 0,
                unready=worker and draw(st.integers(0, 3)) == 0,
            )
        )
    return found


LIMITS = st.one_of(st.integers(1, 5).map(Limit), st.integers(1, 100).map(lambda it: Limit(it, True)))


@settings(max_examples=400, deadline=None)
@given(hosts=machines(), most=LIMITS, kills=st.lists(st.integers(0, 60), max_size=3))
def test_no_rollout_is_over_its_budget_and_none_forgets_a_host(
    hosts: list[Machine], most: Limit, kills: list[int]
) -> None:
    waits = [one.name for one in hosts if one.due and one.reach]
    fleet = Fleet([one for one in hosts if one.reach] + [one for one in hosts if not one.reach], most)
    for steps in kills:
        fleet.run(steps)
    end = fleet.run(-1)
    assert end is not None
    for name in waits:
        one = fleet.machines[name]
        assert one.reboots <= 1
        named = name in end.left_out or name in end.failed
        assert one.reboots == 1 or named, name
    assert set(end.rebooted) <= set(waits)
    assert all(one.reboots == 0 for one in hosts if not one.reach)
    assert set(end.failed).isdisjoint(end.proved) or all(
        fleet.machines[name].fate == "stays cordoned" for name in set(end.failed) & set(end.proved)
    )


@settings(max_examples=200, deadline=None)
@given(hosts=machines(), most=LIMITS)
def test_a_fleet_that_comes_back_is_rebooted_whole(hosts: list[Machine], most: Limit) -> None:
    for one in hosts:
        one.fate, one.down, one.held, one.reach = "well", False, False, True
        one.unready = one.unready and one.due
        one.cordoned = None if one.cordoned == "others" else one.cordoned
    waits = {one.name for one in hosts if one.due}
    end = Fleet(hosts, most).run(-1)
    assert end is not None
    assert (set(end.rebooted), end.left_out, end.failed) == (waits, {}, {})
    assert all(not one.is_away for one in hosts)
