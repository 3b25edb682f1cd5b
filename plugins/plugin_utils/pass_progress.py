# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a run is, in one line: hosts done of all in the task, and which hosts it waits for, for how long.

Times are seconds of one clock that does not go back; the caller has the clock. Any strategy: a task's hosts are counted
by the task, and each host that runs is told with its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .one_line import cells, cut, plain

ROLE = re.compile(r"^[\w.]+ : (?=.)")  # at the beginning of a task's name, where it takes the room of the hosts
SHOWN = 3  # hosts named, of those that run
NAME = 32  # columns of a host's name, and of a loop's item


class Running(NamedTuple):
    """What a host does: which task, since when, and what is to be said beside it."""

    task: str
    since: float
    note: str = ""


class Progress:
    """What a run has said of its hosts so far, in the play, or the batch of it, that runs."""

    def __init__(self) -> None:
        self._play = ""
        self._hosts: set[str] = set()
        self._passed = 0  # hosts of the play's batches before this one
        self._every = 0  # hosts of the play
        self._lost: set[str] = set()  # hosts that failed or could not be reached, and have done nothing since
        self._names: dict[str, str] = {}
        self._alone: set[str] = set()  # tasks that one host does for all
        self._done: dict[str, set[str]] = {}
        self._running: dict[str, Running] = {}

    def begin(self, play: str, batch: Iterable[str], every: int) -> None:
        """A play begins, or its next batch; `every` hosts have the play in all its batches."""
        self._passed = self._passed + len(self._hosts) if play == self._play else 0
        self._play, self._hosts, self._every = play, set(batch), every
        self._names, self._alone, self._done, self._running = {}, set(), {}, {}

    def task(self, task: str, name: str, alone: bool = False) -> None:
        """A task begins; `alone`: on one host, for all of them."""
        self._names[task] = " ".join(ROLE.sub("", plain(name)).split()) or "a task"
        if alone:
            self._alone.add(task)

    def start(self, host: str, task: str, at: float) -> None:
        """A host begins with a task."""
        self._lost.discard(host)
        self._running[host] = Running(task, at)

    def note(self, host: str, said: str) -> None:
        """Something happened in the task that a host is in: a loop's item is done, or it is tried again."""
        if host in self._running:
            self._running[host] = self._running[host]._replace(note=cut(" ".join(plain(said).split()), NAME))

    def finish(self, host: str, task: str, lost: bool = False) -> None:
        """A host is through with a task; `lost`: as it seems, with the play too."""
        self._running.pop(host, None)
        self._done.setdefault(task, set()).add(host)
        if lost:
            self._lost.add(host)

    def line(self, at: float, width: int, slow: float) -> str:
        """The line at a time, at most `width` columns; "" while no host is in a task.

        `slow`: seconds after which a host is one that is waited for. The task is that of the host which is in its own
        for longest; the task of another host is told beside it.
        """
        order = sorted(self._running.items(), key=lambda entry: (entry[1].since, entry[0]))
        if not order:
            return ""
        task = order[0][1].task
        counts = f": {self._counts(task)}, {self._verb(order[0][1], at, slow)} "
        name = self._names.get(task, "a task")
        shown = min(SHOWN, len(order))
        while True:
            named = [self._host(host, running, at, task) for host, running in order[:shown]]
            more = [f"{len(order) - shown} more"] if len(order) > shown else []
            rest = counts + ", ".join([*named, *more])
            room = width - cells(rest)
            if room >= min(cells(name), NAME):
                return cut(name, room) + rest
            if shown == 1:
                return cut(cut(name, NAME) + rest, width)
            shown -= 1

    def _counts(self, task: str) -> str:
        """So many hosts of all that are to come to the task. Those that fell out before have not."""
        done = self._done.get(task, set())
        here = {host for host, running in self._running.items() if running.task == task}
        every = done | here if task in self._alone else (self._hosts - self._lost) | done | here
        said = f"{len(done)} of {len(every)} host{'' if len(every) == 1 else 's'}"
        if len(self._hosts) >= self._every:
            return said
        return f"{said} of this batch, {self._passed} of {self._every} before it"

    def _verb(self, longest: Running, at: float, slow: float) -> str:
        return "waiting for" if at - longest.since >= slow else "running"

    def _host(self, host: str, running: Running, at: float, task: str) -> str:
        beside = [running.note] if running.note else []
        if running.task != task:
            beside.insert(0, cut(self._names.get(running.task, "a task"), NAME))
        return f"{cut(plain(host), NAME)} {spell(at - running.since)}" + (f" ({', '.join(beside)})" if beside else "")


def spell(seconds: float) -> str:
    """A time that went by: "12 s", "2 min 5 s", "1 h 2 min"."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
