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
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Beside, Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.recall import Recall
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import NOTHING, take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.section import Turn
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.unit.fake_host import Killed
from tests.unit.front.test_whole_host import go as passed
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
    watched = recalling(host, '{"units": {}}')
    take_turns(turns(), catalog.unit, watched, Records(Beside(host, watched)), "gpu")
    return host, watched.recall.news()


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
    """For all that a turn reads, in each way in which it may be otherwise, on a host and on a predicted one."""
    host, kept = converged()
    turn = Turn(unit, UNITS[unit])
    asked = {name: one["asked"] for name, one in json.loads(kept)["units"].items()}
    traced = Traced(host)
    made(turn, traced)
    tried, believed = 0, 0
    for leaf, follows in traced.leaves.items():
        for way in WAYS[leaf[0]]:
            for predicted in (False, True):
                other = Otherwise(host, leaf, way, follows)
                found = recalled(turn, other, kept, predicted)
                tried += 1
                if found is None:
                    continue
                assert not any(shows(other, question) != shows(host, question) for question in asked[unit])
                believed += 1
                full = Otherwise(host, leaf, way, follows)
                want = made(turn, PredictedHost(full) if predicted else full)
                assert plain(found) == plain(want), (leaf, way, predicted)
                assert other.written == full.written, (leaf, way, predicted)
    assert 0 < believed < tried  # the rest of what a sight reads, say
