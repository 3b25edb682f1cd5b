# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bench itself, as small as it gets: two cases in two rounds on a simulated host, entered as it enters them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import rooms, stage, stubs
from tests.bench.bench import Bench
from tests.bench.cases import Case
from tests.bench.cgroups import Groups, NoGroups
from tests.bench.plays import Plays
from tests.bench.stage import PYTHON, Kind
from tests.bench.trial import Failed
from tests.sim import controller
from tests.sim.tree import PROFILES, build

WHY = rooms.refusal()
pytestmark = [pytest.mark.newest_core, pytest.mark.skipif(bool(WHY), reason=WHY)]
ASKS = "lsmod"


@pytest.fixture
def plays(tmp_path: Path) -> Plays:
    controller.freeze(str(tmp_path))
    found = Plays(tmp_path)
    found._write("asks", [{"name": "Ask", "ansible.builtin.command": ASKS, "changed_when": False}])
    return found


def test_cases_are_measured_in_turns_and_programs_answer_as_recorded(plays: Plays, tmp_path: Path) -> None:
    tree = build(str(tmp_path / "trees" / "one"), PROFILES["debian"], "one")
    kinds = {"one": Kind("one", {"one": tree}, {})}
    empty, asks = Case("empty", "one", 1, "empty"), Case("asks", "one", 1, "asks", empty="empty")
    try:
        groups = Groups("bcd-bench-smoke")
    except NoGroups as fault:
        pytest.skip(f"no control groups can be made here: {fault}")
    said: list[str] = []
    try:
        with Bench(tmp_path, plays, kinds, groups) as bench:
            bench.record((empty, asks))
            costs = bench.rounds((empty, asks), 2, said.append)
            bench.run(asks, 1)
            assert stubs.asked(tree) == ["lsmod "]
            other = Case("other", "one", 1, command="modprobe nothing-that-was-asked")
            with pytest.raises(stubs.Unanswered, match="modprobe nothing-that-was-asked"):
                bench.run(other, 1)
            with pytest.raises(Failed, match="exited with 3"):
                bench.run(other._replace(command="exit 3"), 1)
    finally:
        groups.remove()
    assert said == ["warm", "round 1 of 2", "round 2 of 2"]
    assert [len(costs[name]) for name in ("empty", "asks")] == [2, 2]
    assert all(cost.host == 0 for cost in costs["empty"])
    assert all(0 < cost.tools < cost.host < cost.wall for cost in costs["asks"])
    assert all(cost.controller > 0 for runs in costs.values() for cost in runs)
    assert not Path(stage.PYTHON).is_symlink()
    assert Path(PYTHON).name.startswith("python")
