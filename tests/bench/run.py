# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every figure that is held to a bound, in one run: `python -m tests.bench.run`.

usage: PYTHONPATH=.build python -m tests.bench.run [--rounds N] [--cases WORD,...] [--folder DIRECTORY]
                                                   [--scale none|bounds|all]

Cases run one by one, round by round, in an order that turns; hosts are simulated ones whose programs answer at once.
The figures go to the terminal, and with all that was measured to .build/bench. Exit status 1: a bound is broken; 2: a
figure could not be taken here.
"""

# Both names are set wherever they are read.
# pylint: disable=used-before-assignment

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench import figures, history, kinds, scale
from tests.bench.bench import Bench
from tests.bench.cases import MANY, Case, cases, pick
from tests.bench.cgroups import Groups, NoGroups
from tests.bench.rooms import CannotMeasure, refusal
from tests.bench.stage import PYTHON, Kind
from tests.bench.trial import Cost
from tests.tools.results import TOP

OUT = TOP / ".build" / "bench"
BEGAN = time.monotonic()
SHARED_MEMORY = Path("/dev/shm")


def collections(environment: str) -> str:
    """Where the collections of an environment with the package ansible lie; empty where there are none."""
    found = sorted(Path(environment).resolve().glob("lib/python3*/site-packages/ansible_collections"))
    return str(found[0].parent) if environment and found else ""


def say(text: str) -> None:
    """Tell how far it is, and after how many seconds, apart from the result."""
    print(f"{time.monotonic() - BEGAN:5.0f} s  {text}", file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    """What it was measured on."""
    from importlib.metadata import version

    return {
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "ansible-core": version("ansible-core"),
        "model": next(
            (
                line.partition(":")[2].strip()
                for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                if line.startswith("model name")
            ),
            platform.machine(),
        ),
    }


def commit() -> str:
    """The checkout's commit, with a + where something differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=TOP, check=False, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    return (git("rev-parse", "--short", "HEAD") or "unknown") + (
        "+" if git("status", "--porcelain", "plugins", "roles", "playbooks") else ""
    )


def groups() -> Groups | None:
    """Control groups, or None with a word on what that costs."""
    try:
        return Groups(f"bcd-bench-{os.getpid()}")
    except NoGroups as fault:
        say(f"NO CONTROL GROUPS HERE ({fault}): only wall times are figures")
        return None


def options(argv: list[str]) -> argparse.Namespace:
    given = argparse.ArgumentParser(prog="python -m tests.bench.run", description=__doc__)
    given.add_argument("--rounds", type=int, default=5)
    given.add_argument("--turns", type=int, default=2, help="how often all numbers of hosts are run")
    given.add_argument("--cases", default="", help="words that the names of cases have, separated by commas")
    given.add_argument("--many", type=int, default=MANY, help="hosts of the largest cases")
    given.add_argument("--peers", default="", help="an environment that has the package ansible, for the peers")
    given.add_argument("--folder", type=Path, default=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None)
    given.add_argument("--scale", choices=("none", "bounds", "all"), help="numbers of hosts; none with --cases")
    given.add_argument("--list", action="store_true", help="name the cases, and run none")
    return given.parse_args(argv)


def measured(given: argparse.Namespace, chosen: tuple[Case, ...]) -> dict[str, Any]:
    """Run the cases; everything that is to be kept of them."""
    held = groups()
    try:
        with tempfile.TemporaryDirectory(prefix="bcd-bench-", dir=given.folder) as scratch:
            place = Path(scratch)
            least = {scale.KIND: scale.TREES} if loads(given) else {}
            with (
                kinds.made(place, chosen, collections(given.peers), say, least) as (plays, made),
                Bench(place, plays, made, held) as bench,
            ):
                say("record what programs are asked")
                bench.record(chosen)
                costs = bench.rounds(chosen, given.rounds, say)
                apart = bench.meter.apart
                known = {
                    "anew": bench.anew,
                    "never": {
                        kind: bench.never_kept(kind, units(made[kind]))
                        for kind in sorted({case.kind for case in chosen if case.is_settled and not case.changes})
                    },
                }
                rows: list[scale.Row] = []
                written: list[scale.Events] = []
                faults: list[str] = []
                if loads(given):
                    rows, written, faults = scale.measured(bench, place, loads(given), given.turns, say)
    finally:
        if held is not None:
            held.remove()
    return {"costs": costs, "apart": apart, "rows": rows, "events": written, "faults": faults, **known}


def units(kind: Kind) -> tuple[str, ...]:
    """Those of the section of a kind's hosts."""
    return tuple(kind.variables.get("bcd_converge_units", ()))


def turns(found: dict[str, Any]) -> list[str]:
    """What is to be said of units whose quiet turns are not known again, since they cost more than others."""
    said = [f"NOT KNOWN AGAIN in {case}: {', '.join(sorted(those))}" for case, those in found["anew"].items()]
    for kind, by_code in found["never"].items():
        for code, those in by_code.items():
            if those:
                said.append(f"NEVER KEPT on hosts of the kind {kind}, by the code {code[:12]}: {', '.join(those)}")
    return said


def loads(given: argparse.Namespace) -> tuple[scale.Load, ...]:
    """How many hosts are run, in which ways."""
    by_word: dict[str, tuple[scale.Load, ...]] = {"none": (), "bounds": scale.BOUNDED, "all": scale.ALL}
    return by_word[given.scale or ("none" if given.cases else "bounds")]


def main(argv: list[str]) -> int:
    given = options(argv)
    chosen = pick(cases(PYTHON, given.many), given.cases)
    if not collections(given.peers):
        say("NO PEERS: name an environment with the package ansible by --peers, as make bench does")
        chosen = tuple(case for case in chosen if not case.peers)
    if given.list:
        print("\n".join(case.name for case in chosen))
        return 0
    why = refusal() or ("" if chosen else f"no case has one of the words {given.cases}: see --list")
    if loads(given) and not any(case.kind == scale.KIND for case in chosen):
        why = why or "numbers of hosts are run on what a case of the role has recorded: pick one, such as role"
    if why:
        say(f"NOTHING CAN BE MEASURED HERE: {why}")
        return 2
    began, of = datetime.datetime.now(datetime.timezone.utc), commit()  # what is edited meanwhile is not measured
    try:
        found = measured(given, chosen)
    except CannotMeasure as fault:
        say(f"NOTHING CAN BE MEASURED HERE: {fault}")
        return 2
    by_name = {case.name: case for case in chosen}
    costs: dict[str, list[Cost]] = found["costs"]
    every = (*figures.over(given.many), *figures.FIGURES)
    wanted = [one for one in every if not given.cases or {one.above, one.below} <= set(by_name)]
    results = figures.measure(wanted, costs, by_name, found["apart"])
    if loads(given):
        results += scale.results(found["rows"], found["events"][-1] if found["events"] else None, found["apart"])
        print(scale.shown(found["rows"], found["events"], found["apart"]) + "\n")
    if not given.cases:
        results.append(kinds.eight_gpus(given.folder, say))
    return told(f"{began:%Y-%m-%dT%H:%M:%SZ}", of, given, results, found, by_name)


def told(
    began: str,
    of: str,
    given: argparse.Namespace,
    results: list[figures.Result],
    found: dict[str, Any],
    by_name: dict[str, Case],
) -> int:
    """Print and keep what was found, with when it `began` and `of` which commit it is; the exit status."""
    costs: dict[str, list[Cost]] = found["costs"]
    print(figures.costs_shown(costs, by_name, found["apart"]) + "\n")
    print(figures.shown(results) + "\n")
    raw = {name: [cost._asdict() for cost in runs] for name, runs in costs.items()}
    over = {name: {part: figures.over_empty(name, part, costs, by_name) for part in Cost._fields[:4]} for name in costs}
    run = {
        "time": began,
        "commit": of,
        "machine": machine(),
        "rounds": given.rounds,
        "apart": found["apart"],
        "seconds": round(time.monotonic() - BEGAN),
        "figures": history.document(results),
        "raw": raw,
        "over_empty": over,
        "hosts": {name: case.hosts for name, case in by_name.items()},
        "turns": turns(found),
        "scale": scale.document(found["rows"], found["events"]),
    }
    print(f"kept in {history.keep(OUT, run)}, with the history beside it: history.svg, and the table: measured.md")
    (OUT / "measured.md").write_text(figures.table(results), encoding="utf-8")
    broken = [result.figure.name for result in results if result.holds is False]
    missing = [result.figure.name for result in results if result.holds is None]
    print(f"it took {run['seconds']} s; passes over assignments have a bench of their own: make bench-holds")
    if broken:
        print("BROKEN BOUNDS: " + "; ".join(broken))
    if missing:
        print("NOT MEASURED: " + "; ".join(missing))
    for line in turns(found):
        print(line)
    if found["faults"]:
        print("DID NOT DO THEIR WORK: " + "; ".join(found["faults"]))
    return 1 if broken or found["faults"] else 2 if missing and not given.cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
