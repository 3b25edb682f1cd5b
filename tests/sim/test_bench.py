# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bench itself, as small as it gets: two commands in two rounds and one play, on a host entered as it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import bench, rooms, stubs
from tests.bench.bench import Bench
from tests.bench.cases import Case
from tests.bench.cgroups import Groups, NoGroups
from tests.bench.plays import Plays
from tests.bench.stage import PYTHON, Kind
from tests.bench.trial import Failed
from tests.sim.tree import PROFILES, build

WHY = rooms.refusal()
pytestmark = [pytest.mark.newest_core, pytest.mark.skipif(bool(WHY), reason=WHY)]
NOTHING = Case("nothing", "one", 1, command=":")
SELDOM = Case("takes long", "one", 1, command=":", rounds=1)
ASKS = Case("asks", "one", 1, command="lsmod", empty="nothing", says="Module")


@pytest.fixture
def groups() -> Iterator[Groups]:
    try:
        made = Groups("bcd-bench-smoke")
    except NoGroups as fault:
        pytest.skip(f"no control groups can be made here: {fault}")
    yield made
    made.remove()


def test_cases_are_measured_in_turns_and_programs_answer_as_recorded(
    groups: Groups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "OLD", 0.0)  # nothing is kept of commands
    plays = Plays(tmp_path)
    plays._write("asks", [{"name": "Ask", "ansible.builtin.raw": "lsmod", "changed_when": False}])
    tree = build(str(tmp_path / "trees" / "one"), PROFILES["debian"], "one")
    said: list[str] = []
    with Bench(tmp_path, plays, {"one": Kind("one", {"one": tree}, {})}, groups) as held:
        held.record((NOTHING, ASKS))
        costs = held.rounds((NOTHING, ASKS, SELDOM), 2, said.append)
        play, _out = held.run(Case("a play", "one", 1, "asks"), 1)
        assert stubs.asked(tree) == ["lsmod "]
        other = Case("other", "one", 1, command="modprobe nothing-that-was-asked")
        with pytest.raises(stubs.Unanswered, match="modprobe nothing-that-was-asked"):
            held.run(other, 1)
        with pytest.raises(Failed, match="exited with 3"):
            held.run(other._replace(command="exit 3"), 1)
        with pytest.raises(Failed, match="did not say 'done'"):
            held.run(other._replace(command="echo", says="done"), 1)
    assert said == ["warm", "warm", "round 1 of 2", "round 2 of 2"]
    assert [len(costs[case.name]) for case in (NOTHING, ASKS, SELDOM)] == [2, 2, 1]
    assert all(cost.controller == cost.tools == 0 < cost.host for cost in costs["nothing"])
    assert all(0 < cost.tools < cost.wall and cost.host > 0 for cost in costs["asks"])
    assert play.controller > play.host > 0 < play.tools
    assert Path(PYTHON).name.startswith("python")
    assert not Path(PYTHON).is_symlink()
