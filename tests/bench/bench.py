# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs cases: records what their programs are asked, then measures them, round by round, each run looked at."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import quiet, stubs
from tests.bench.cases import Case, wrong
from tests.bench.cgroups import Groups
from tests.bench.entry import ENVIRONMENT, words
from tests.bench.medians import order
from tests.bench.plays import Plays
from tests.bench.rooms import Rooms, inventory
from tests.bench.stage import PYTHON, Kind, hostvars
from tests.bench.trial import Cost, Failed, Meter, clean_environment

OLD = 4.0  # seconds, after which no file is so young that it could change without another stamp (core.question)
WARM = 2  # rounds: one keeps what quiet turns ask, one more what that one changed
PLAYBOOK = os.path.join(os.path.dirname(sys.executable), "ansible-playbook")


class Bench:
    """Kinds of hosts whose rooms are open, and the plays for them; a context."""

    def __init__(
        self, scratch: Path, plays: Plays, kinds: dict[str, Kind], groups: Groups | None, forks: int = 20
    ) -> None:
        self._scratch, self._plays, self._kinds, self._forks = scratch, plays, kinds, forks
        self._doors = " ".join(groups.doors("host")) if groups else "/dev/null"
        self.anew: dict[str, set[str]] = {}  # by case: units that were not known again in a round that counts
        self.meter = Meter(groups)
        trees = [tree for kind in kinds.values() for tree in kind.trees.values()]
        self._rooms = Rooms(trees, PYTHON, groups.doors("tools")[0] if groups else "")

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_unused: object) -> None:
        self._rooms.close()

    def inventory(self, kind: str, count: int, part: range | None = None) -> str:
        """Of the first hosts of a kind, or of those whose numbers are in `part`, which share trees; the path."""
        own = list(hostvars(self._kinds[kind], self._rooms.holders).items())
        if part is None and count <= len(own):
            found = dict(own[:count])
        else:
            found = {f"host-{one:04}": own[one % len(own)][1] for one in part or range(count)}
        first = part.start if part else 0
        fixed = {"ansible_python_interpreter": PYTHON, "room_doors": self._doors}
        shared = {**fixed, **self._kinds[kind].variables}  # of a group, as a section of many hosts is written
        return inventory(self._scratch / f"{kind}-{count}-{first}.json", found, shared)

    def environment(self, clean: dict[str, str], forks: int) -> dict[str, str]:
        """Of a program that runs Ansible over these hosts."""
        return self._plays.environment(clean, forks)

    def run(
        self, case: Case, count: int, forks: int = 0, strategy: str = "linear", part: range | None = None
    ) -> tuple[Cost, str]:
        """One run over the first `count` hosts, and what it printed; raises Failed where it did something else."""
        trees = list(self._kinds[case.kind].trees.values())[:count]
        for tree in trees:
            if case.reset is not None:
                case.reset(tree)
            stubs.begin(tree)
        try:
            cost, out = self._spend(case, trees, self.inventory(case.kind, count, part), forks, strategy)
        except Failed:
            for tree in trees:
                stubs.judge(tree)  # which says more, where that is why
            raise
        fault = wrong(case, out, count)
        if fault:
            raise Failed(f"{case.name}: {fault}:\n{out[-3000:]}")
        return cost, out

    def _spend(self, case: Case, trees: list[str], hosts: str, forks: int, strategy: str) -> tuple[Cost, str]:
        if case.command:
            argv = words(self._rooms.holders[trees[0]], self._doors, case.command)
            return self.meter.run(argv, ENVIRONMENT, Path("/"), is_host=True)
        argv = [PLAYBOOK, "-i", hosts, self._plays.path(case.play), *case.words]
        environment = self._plays.environment(clean_environment(), forks or self._forks, case.peers)
        return self.meter.run(argv, {**environment, "ANSIBLE_STRATEGY": strategy}, self._scratch)

    def record(self, cases: tuple[Case, ...]) -> None:
        """Run each case once on the seed of its kind, and give all of the kind programs with what was answered."""
        for kind in self._kinds.values():
            mine = [case for case in cases if case.kind == kind.name]
            stubs.record(kind.seed)
            calls = []
            for case in mine:
                self.run(case, 1)
                calls += stubs.recorded(kind.seed)
            names = list(kind.trees)
            for name, tree in kind.trees.items():
                stubs.replay(tree, calls, (names[0], name))

    def rounds(self, cases: tuple[Case, ...], number: int, told: Callable[[str], None]) -> dict[str, list[Cost]]:
        """So many rounds, after WARM ones that are not counted, by which quiet turns are kept and known again.

        A case that is not run in every round keeps nothing, and is not warmed: it was run when it was recorded.
        """
        found: dict[str, list[Cost]] = {case.name: [] for case in cases}
        by_name = {case.name: case for case in cases}
        time.sleep(OLD)
        for turn in range(-WARM, number):
            for name in order([case.name for case in cases], max(turn, 0)):
                case = by_name[name]
                if -WARM < turn < 0 and not case.is_settled:
                    continue  # what was warmed once is warm
                if case.rounds and turn not in range(case.rounds):
                    continue
                before = quiet.kept(self._kinds[case.kind].seed)
                cost, _out = self.run(case, case.hosts)
                for tree in list(self._kinds[case.kind].trees.values())[: case.hosts]:
                    stubs.judge(tree)
                if turn >= 0:
                    found[name].append(cost)
                    self._compare(case, before)
            told(f"round {turn + 1} of {number}" if turn >= 0 else "warm")
        return found

    def _compare(self, case: Case, before: quiet.Kept) -> None:
        """Note the units of a converged case whose turns were made in full, though they had been kept."""
        units = quiet.made_anew(before, quiet.kept(self._kinds[case.kind].seed))
        if units and case.is_settled and not case.changes:
            self.anew.setdefault(case.name, set()).update(units)

    def never_kept(self, kind: str, units: tuple[str, ...]) -> dict[str, list[str]]:
        """By the name of code that ran on the kind's seed: the units that are made in full on each pass."""
        return quiet.never(quiet.kept(self._kinds[kind].seed), units)

    def asked(self, kind: str) -> list[str]:
        """What the programs of a kind's seed were asked in its last run."""
        return stubs.asked(self._kinds[kind].seed)
