# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quiet turns are known again: they come to what the turn comes to, and whatever differs has the turn made."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.question import FOLLOWING
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Beside, Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.recall import Recall
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import NOTHING, take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.section import Turn
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.cluster.control_plane import TOKEN, Cluster
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.front.test_whole_host import go as passed
from tests.unit.front.test_whole_worker import go as joined
from tests.unit.front.test_whole_worker import machine, units
from tests.unit.perturbed import WAYS, Otherwise, Traced
from tests.unit.whole_host import UNITS, WholeHost

pytestmark = pytest.mark.exhaustive

CODE = "c0de"
NONE = Outcome("", False, "", (), (), (), (), (), None)


def recalling(host: Host, kept: str = "") -> Watched:
    """The host, watched, with what earlier passes have kept of it."""
    watched = Watched(host)
    watched.recall = Recall(watched, CODE)
    if kept:
        watched.recall._kept = json.loads(kept)["units"]
    return watched


@cache
def converged() -> tuple[WholeHost, str]:
    """A host after its pass, and what a quiet one has kept of it."""
    host = WholeHost()
    assert passed(host)["unconverged"] == []
    return host, kept_of(host, turns())


def kept_of(host: FakeHost, quiet: list[Turn]) -> str:
    """What a pass of these turns keeps."""
    watched = recalling(host, '{"units": {}}')
    take_turns(quiet, catalog.unit, watched, Records(Beside(host, watched)), "gpu")
    text: str = watched.recall.news()
    return text


def turns() -> list[Turn]:
    return [Turn(unit, settings) for unit, settings in UNITS.items()]


def made(turn: Turn, host: Host) -> Outcome | str:
    """The outcome of a turn without anything kept, or where it would have changed the machine."""
    try:
        return take_turns([turn], catalog.unit, host, Records(host), "gpu")[turn.unit]
    except Killed as change:
        return str(change)


def recalled(turn: Turn, host: Host, kept: str, predicted: bool) -> Outcome | None:
    """The outcome of a turn that is known again, None where it has to be made; records are written as after it."""
    watched = recalling(host, kept)
    is_made = []

    def make() -> Outcome:
        is_made.append(turn.unit)
        return NONE

    over: Host = PredictedHost(watched) if predicted else watched
    records = Records(over if predicted else Beside(host, watched))
    outcome: Outcome = watched.recall.turn(turn, over, records, NOTHING, make)
    return None if is_made else outcome


def shows(host: Host, question: list[Any]) -> Any:
    """What a host answers to a question that is kept, of those that are asked of a path or a program."""
    _digest, kind, *given = question
    if kind not in ("read", "file", "names", "exists", "link", "which"):
        return None
    try:
        return getattr(host, kind)(*given)
    except StepFailed as fault:
        return fault.message


def plain(outcome: Outcome | str | None) -> Any:
    """As results show it, which know no tuples."""
    return outcome if isinstance(outcome, str) else json.loads(json.dumps(outcome))


@pytest.mark.parametrize("unit", UNITS)
def test_whatever_is_otherwise_the_turn_comes_to_the_same(unit: str) -> None:
    host, kept = converged()
    hold(host, kept, Turn(unit, UNITS[unit]))


def test_whatever_is_otherwise_a_worker_comes_to_the_same() -> None:
    with Cluster() as cluster:
        cluster.token()
        host = machine(cluster)
        given = units(host)
        assert joined(host, given, TOKEN)["unconverged"] == []
        both = [Turn(unit, settings) for unit, settings in given.items()]
        kept = kept_of(host, both)
        assert {*json.loads(kept)["units"]} == {"container-toolkit", "k8s-join"}
        for turn in both:
            found = recalled(turn, Traced(host), kept, False)
            assert plain(found) == plain(made(turn, Traced(host)))
        hold(host, kept, both[1], every=3)


def hold(host: FakeHost, kept: str, turn: Turn, every: int = 1) -> None:
    """For all that a turn reads, in each way in which it may be otherwise, on a host and on a predicted one.

    `every` n-th of them is enough where that is a lot.
    """
    asked = json.loads(kept)["units"][turn.unit]["asked"]
    traced = Traced(host)
    made(turn, traced)
    cases = [(leaf, way, predicted) for leaf in traced.leaves for way in WAYS[leaf[0]] for predicted in (False, True)]
    believed = 0
    for leaf, way, predicted in cases[::every]:
        other = Otherwise(host, leaf, way, traced.leaves[leaf])
        found = recalled(turn, other, kept, predicted)
        if found is None:
            continue
        assert not any(shows(other, question) != shows(host, question) for question in asked)
        believed += 1
        full = Otherwise(host, leaf, way, traced.leaves[leaf])
        want = made(turn, PredictedHost(full) if predicted else full)
        assert plain(found) == plain(want), (leaf, way, predicted)
        assert other.written == full.written, (leaf, way, predicted)
    assert 0 < believed < len(cases) / every  # the rest of what a sight reads, say


@pytest.mark.parametrize("unit", UNITS)
def test_whatever_steps_before_it_decide_a_predicted_turn_comes_to_the_same(unit: str) -> None:
    host, kept = converged()
    turn = Turn(unit, UNITS[unit])
    decided = decisions(host, kept, turn)
    believed = 0
    for effect in decided[::3]:
        over = PredictedHost(recalling(host, kept))
        over.apply(run(("before",), "what stood before it", effects=(effect,)))
        is_made: list[str] = []
        found = over.recall.turn(turn, over, Records(over), NOTHING, lambda made=is_made: made.append(unit) or NONE)
        if is_made:
            continue
        believed += 1
        full = PredictedHost(host)
        full.apply(run(("before",), "what stood before it", effects=(effect,)))
        assert plain(found) == plain(made(turn, full)), effect
    assert believed < len(decided[::3])


def decisions(host: FakeHost, kept: str, turn: Turn) -> list[Effect]:
    """What a step before a turn may decide of all that it reads, asks, or is said to follow from."""
    traced = Traced(host)
    made(turn, traced)
    asked = [tuple(question[1:]) for question in json.loads(kept)["units"][turn.unit]["asked"]]
    paths = {given for _kind, given, *_more in traced.leaves if isinstance(given, str) and given.startswith("/")}
    paths |= {path for kind, *given in asked if kind in FOLLOWING for path in given[1]}
    lines = {tuple(given[0]) for kind, *given in asked if kind in ("ask", *FOLLOWING)}
    found = []
    for path in sorted(paths):
        above = path.rpartition("/")[0]
        found += [Effect("file", path, f"{host.text(path) or ''}# x\n"), Effect("gone", path), Effect("gone", above)]
        found += [Effect("file", f"{path}/x.conf", "x\n"), Effect("file", f"{above}/00.conf", "alias nvidia x\n")]
        found += [Effect(kind, place, "it is done") for kind in ("unknown", "appears") for place in (path, above)]
    for words in sorted(lines):
        line = " ".join(words)
        found += [Effect("program", words[0], "it is done"), Effect("program", " ".join(words[:2]), "it is done")]
        found += [Effect("answers", line, "else\n"), Effect("fails", line)]
    return found
