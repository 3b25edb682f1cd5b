# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a converged pass goes with the number of hosts: the controller's time and memory, and what a job of AWX writes.

Hosts beyond the trees that there are share them: the n-th has the tree n modulo their number, so that hosts which are
on at the same time have trees of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.bench import WARM, Bench
from tests.bench.cases import CONVERGE, Case
from tests.bench.figures import TOGETHER, Figure, Result
from tests.bench.medians import Spread, spread
from tests.bench.trial import Cost, Failed, clean_environment

KIND = "whole"
TREES = 64
FORKS, MOST = 50, 1000
STRATEGIES = ("linear", "free", "host_pinned")
RUNNER = os.path.join(os.path.dirname(sys.executable), "ansible-runner")
PER_HOST = Figure("controller per host: 1,000 hosts over 100", 1.15, prototype="flat to 200")
MEMORY = Figure("controller's memory at 1,000 hosts, forks 50, GiB", 1.0, unit="GiB")
EVENTS = Figure("job events of a converged pass, beyond two a host", 10, prototype="4", unit="events")


class Load(NamedTuple):
    """A pass over so many hosts; `slices`: as many jobs, one after another, which AWX cuts its inventory into."""

    hosts: int
    forks: int = FORKS
    strategy: str = "linear"
    slices: int = 1

    @property
    def name(self) -> str:
        """For a table."""
        cut = f", {self.slices} slices" if self.slices > 1 else ""
        return f"{self.hosts} hosts, forks {self.forks}, {self.strategy}{cut}"


class Row(NamedTuple):
    """What a load took: the run, and an empty play over the same hosts."""

    load: Load
    cost: Cost
    empty: Cost

    @property
    def per_host(self) -> float:
        """Seconds of the controller's processor time a host, over the empty play."""
        return (self.cost.controller - self.empty.controller) / self.load.hosts


class Events(NamedTuple):
    """What a job wrote: events, bytes of them all, and bytes of its result for each host."""

    hosts: int
    events: int
    event_bytes: int
    result_bytes: float


# What the bounds are about: a thousand hosts stand among runs of a hundred, so that the machine is the same for both.
BOUNDED = (Load(100), Load(MOST), Load(100))
ALL = (
    *(Load(hosts, forks, how) for hosts in (1, 10, 100, MOST) for forks in (10, FORKS) for how in STRATEGIES),
    Load(100, slices=4),
    Load(MOST, slices=10),
)


def run(bench: Bench, load: Load) -> Row:
    """One pass and one empty play; the wall and processor times of slices are added, of the memory the most counts."""
    costs: dict[str, list[Cost]] = {"empty": [], CONVERGE: []}
    for one in range(load.slices):
        for play, found in costs.items():
            part = range(one, load.hosts, load.slices)  # of an inventory in order, as AWX takes host[i::n]
            case = Case(load.name, KIND, len(part), play)
            found.append(bench.run(case, len(part), load.forks, load.strategy, part)[0])
    return Row(load, together(costs[CONVERGE]), together(costs["empty"]))


def together(costs: Sequence[Cost]) -> Cost:
    """Of jobs that ran one after another."""
    peaks = [cost.peak for cost in costs if cost.peak is not None]
    wall, controller, host, tools = (sum(getattr(cost, part) for cost in costs) for part in Cost._fields[:4])
    return Cost(wall, controller, host, tools, max(peaks, default=None))


def events(bench: Bench, scratch: Path, hosts: int) -> Events:
    """What ansible-runner, AWX's own engine, writes of a converged pass over so many hosts."""
    job = scratch / f"job-{hosts}"
    shutil.rmtree(job, ignore_errors=True)
    (job / "project").mkdir(parents=True)
    (job / "env").mkdir()
    play = [{"name": "Converge", "ansible.builtin.import_playbook": CONVERGE}]
    (job / "project" / "converge.yml").write_text(json.dumps(play), encoding="utf-8")
    settings = {"idle_timeout": 0, "job_timeout": 0}
    (job / "env" / "settings").write_text(json.dumps(settings), encoding="utf-8")
    words = [RUNNER, "run", str(job), "-p", "converge.yml", "--inventory", bench.inventory(KIND, hosts), "-q"]
    values = bench.environment(clean_environment(), FORKS)
    values["PATH"] = os.pathsep.join([os.path.dirname(RUNNER), values["PATH"]])  # it looks for ansible-playbook
    bench.meter.run(words, values, job)
    found = []
    for path in sorted(job.glob("artifacts/*/job_events/*.json")):
        if not path.name.endswith("-partial.json"):
            found.append(path.read_bytes())
    results = [json.loads(event)["event_data"].get("res") for event in found if b'"runner_on_ok"' in event]
    sizes = [len(json.dumps(result)) for result in results if result]
    return Events(hosts, len(found), sum(map(len, found)), sum(sizes) / hosts)


def results(rows: Sequence[Row], written: Events | None, apart: bool) -> list[Result]:
    """The bounds on scale, by what was run; `apart`: the controller's processor time is known by itself."""
    by_hosts: dict[int, list[Row]] = {}
    for row in rows:
        if row.load.forks == FORKS and row.load.strategy == "linear" and row.load.slices == 1:
            by_hosts.setdefault(row.load.hosts, []).append(row)
    found = []
    if by_hosts.get(100) and by_hosts.get(MOST):
        base = spread([row.per_host for row in by_hosts[100]]).median
        ratios = spread([row.per_host / base for row in by_hosts[MOST]])
        found.append(Result(PER_HOST, ratios) if apart else Result(PER_HOST, None, TOGETHER))
        peaks = [row.cost.peak / (1 << 30) for row in by_hosts[MOST] if row.cost.peak is not None]
        found.append(Result(MEMORY, spread(peaks)) if peaks else Result(MEMORY, None, "the kernel tells no peak"))
    else:
        found += [Result(figure, None, "100 and 1,000 hosts were not run") for figure in (PER_HOST, MEMORY)]
    if written is None:
        return [*found, Result(EVENTS, None, "no job was run")]
    beyond = float(written.events - 2 * written.hosts)
    return [*found, Result(EVENTS, Spread(beyond, beyond, beyond))]


def shown(rows: Sequence[Row], written: Sequence[Events], apart: bool) -> str:
    """Tables for the terminal; without processor times where they are not known `apart`."""
    form = "{:<46} {:>8} {:>14} {:>9} {:>9} {:>8}"
    lines = [form.format("converged pass, over empty", "wall s", "controller ms", "host ms", "tools ms", "MiB")]
    for row in rows:
        many = row.load.hosts
        each = (1000 * row.per_host, 1000 * row.cost.host / many, 1000 * row.cost.tools / many)
        wall, peak = f"{row.cost.wall - row.empty.wall:.1f}", (row.cost.peak or 0) >> 20
        times = (f"{value:.1f}" if apart else "-" for value in each)
        lines.append(form.format(row.load.name, wall, *times, peak or "-"))
    for one in written:
        each_host = f"{one.event_bytes / one.hosts / 1000:.1f} kB of them a host"
        results = f"{one.result_bytes / 1000:.1f} kB of results a host"
        lines.append(f"a job over {one.hosts} hosts: {one.events} events, {each_host}, {results}")
    return "\n".join(lines)


def measured(
    bench: Bench, scratch: Path, loads: Sequence[Load], turns: int, told: Callable[[str], None]
) -> tuple[list[Row], list[Events], list[str]]:
    """All loads so often, in turns, the events of two jobs, and why a run did not do what it was to."""
    rows: list[Row] = []
    faults: list[str] = []
    for _turn in range(WARM):  # on hosts, too, that no case had
        bench.run(Case("warm", KIND, TREES, CONVERGE), TREES)
    for turn in range(turns):
        for load in loads:
            told(f"turn {turn + 1} of {turns}: {load.name}")
            try:
                rows.append(run(bench, load))
            except Failed as fault:
                faults.append(str(fault).partition("\n")[0])
                told(f"FAILED: {fault}")
    return rows, [events(bench, scratch, hosts) for hosts in (10, 100)], faults


def document(rows: Sequence[Row], written: Sequence[Events]) -> dict[str, Any]:
    """As plain values."""
    return {
        "loads": [
            {**row.load._asdict(), "cost": row.cost._asdict(), "empty": row.empty._asdict(), "per_host": row.per_host}
            for row in rows
        ],
        "events": [one._asdict() for one in written],
    }
