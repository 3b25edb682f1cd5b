# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What passes over holds cost: those that bind, change nothing and release all, and check mode before the two.

usage: PYTHONPATH=.build python -m tests.bench.holds [--turns N] [--folder DIRECTORY]

Over 8 GPUs of 48 slots each: 96 and 384 assignments of a slot, and 1,000, of which 616 ask for a slot that another has;
without limits, with a slice for each, and for Kubernetes with a pod for each. The code is the module's, from options to
result, and our files lie on a real file system, in DIRECTORY (/dev/shm, where it is there). Times are the best of N
turns (3).

Exit status 1 when an assignment among the most costs more than twice what it costs among the fewest.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import holds
from tests.bench.bench_host import BenchHost, Work
from tests.kubelet.pods import Container, Pod
from tests.unit.core.jail import in_jail
from tests.unit.hold_host import KUBERNETES, add_kubelet, assign, hold_host, uuids

GPUS, SLOTS = 8, 48
SIZES = (96, 384, 1000)
LIMITS = {"cpus": "0-3", "mems": "0", "memory_bytes": 1 << 30}
KINDS: dict[str, dict[str, Any]] = {
    "devices only": {},
    "with a slice each": {"limits": LIMITS},
    "of a pod each": {"binding": KUBERNETES},  # so that their releases wait
}
PASSES = ("is to bind", "binds", "changes nothing", "is to release", "releases")  # "is to": check mode
MOST = 2.0  # times what an assignment costs among the fewest
SHARED_MEMORY = Path("/dev/shm")
OPTIONS = (
    *("passthrough", "instances", "max_cdi_version", "slot_count", "acknowledge", "signing_key"),
    *("assignments", "generation", "node_id"),
)


class Cost(NamedTuple):
    """Of one pass: what it took, read, wrote and ran; `held` and `failed` are how many assignments are."""

    cpu: float  # seconds of the processor, which tell growth on a machine that does other things too
    seconds: float  # by the clock
    read: int  # bytes
    written: int  # bytes
    reads: int
    changes: int
    programs: int
    held: int
    failed: int


class Row(NamedTuple):
    """One pass over so many assignments."""

    kind: str
    what: str
    size: int
    cost: Cost


def assignments(gpus: list[str], size: int, more: dict[str, Any]) -> list[dict[str, Any]]:
    """So many of a slot each, spread over the GPUs; when the slots are used up, of one that another has."""
    slots = [f"{gpu}/s{slot}" for slot in range(SLOTS) for gpu in gpus]
    empty = dict.fromkeys(("reservation_id", "limits", "env", "instance_id"))
    return [
        {**empty, **assign(f"alloc_{at:04}", slots[at % len(slots)], env=["HF_HOME=/data"]), **more}
        for at in range(size)
    ]


def run(host: Host, wanted: list[dict[str, Any]], generation: int) -> dict[str, Any]:
    """The module's result over these assignments."""
    given = {"assignments": wanted, "generation": generation, "node_id": "node-1"}
    params = {**dict.fromkeys(OPTIONS), "max_disruption": "gpu", **given}
    return holds.report(holds.converge_holds(params, host, Records(host)))


def one_pass(host: BenchHost, wanted: list[dict[str, Any]], generation: int = 1, check: bool = False) -> Cost:
    """The module's run over these assignments, and what it took."""
    host.work = work = Work()
    start, cpu = time.perf_counter(), time.process_time()
    result = run(PredictedHost(host) if check else host, wanted, generation)
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - start
    if result["section"]["state"] == "PROGRESSING" and not check:
        raise RuntimeError(f"the pass did not end: {result['section']['message'][:500]}")
    held, failed = len(result["bound"]) + len(result["kept"]), len(result["failures"])
    return Cost(cpu, seconds, work.read, work.written, work.reads, work.changes, work.programs, held, failed)


def passes(size: int, more: dict[str, Any]) -> list[Cost]:
    """All of PASSES over one host."""
    host = BenchHost(["H100-80GB"] * GPUS)
    wanted = assignments(uuids(host), size, more)
    if more.get("binding") == KUBERNETES:
        held = [one["devices"][0]["id"].replace("/", "_") for one in wanted[: GPUS * SLOTS]]
        add_kubelet(host, *(Pod(f"uid-{at}", f"pod-{at}", (Container(devices=(one,)),)) for at, one in enumerate(held)))
    binding, bound = one_pass(host, wanted, check=True), one_pass(host, wanted)
    quiet = one_pass(host, wanted)
    releasing, released = one_pass(host, [], 2, check=True), one_pass(host, [], 2)
    if binding.changes or quiet.changes or releasing.changes or released.held:
        raise RuntimeError("check mode or the second pass changed something, or the last pass kept a hold")
    return [binding, bound, quiet, releasing, released]


def warm() -> None:
    """Have imported what passes import late: in the jail there is nothing to import from."""
    host = hold_host()
    add_kubelet(host)
    for more in KINDS.values():
        wanted = assignments(uuids(host), 2 * SLOTS + 1, more)
        for some in (wanted, wanted, []):
            run(PredictedHost(host), some, 1)
            run(host, some, 1)


def measure(folder: Path | None, sizes: tuple[int, ...] = SIZES, turns: int = 3) -> list[Row]:
    """The best of the turns, each of them on a host of its own in a folder of its own."""
    rows = []
    for kind, more in KINDS.items():
        for size in sizes:
            made = []
            for _turn in range(turns):
                with tempfile.TemporaryDirectory(prefix="bcd-bench-", dir=folder) as tree:
                    made.append(in_jail(Path(tree), passes, size, more))
            best = [min(turn[at] for turn in made) for at in range(len(PASSES))]
            rows += [Row(kind, what, size, cost) for what, cost in zip(PASSES, best)]
    return rows


def growth(rows: list[Row], row: Row) -> float:
    """What an assignment costs here, in what it costs in the same pass among the fewest."""
    fewest = min((one for one in rows if one[:2] == row[:2]), key=lambda one: one.size)
    return (row.cost.cpu / row.size) / (fewest.cost.cpu / fewest.size)


def table(rows: list[Row]) -> str:
    """The rows for a reader."""
    form = "{:<18} {:<16} {:>11} {:>5} {:>6} {:>8} {:>8} {:>11} {:>6}  {:>9} {:>9} {:>7} {:>8}"
    head = (
        *("holds", "the pass that", "assignments", "held", "failed", "seconds", "cpu", "cpu ms each", "ratio"),
        *("kB read", "written", "changes", "programs"),
    )
    lines = [form.format(*head)]
    for row in rows:
        cost = row.cost
        times = (f"{cost.seconds:.3f}", f"{cost.cpu:.3f}", f"{1000 * cost.cpu / row.size:.3f}")
        sizes = (f"{cost.read / 1000:.0f}", f"{cost.written / 1000:.0f}")
        work = (*times, f"{growth(rows, row):.2f}", *sizes, cost.changes, cost.programs)
        lines.append(form.format(row.kind, row.what, row.size, cost.held, cost.failed, *work))
    return "\n".join(lines)


def steep(rows: list[Row]) -> list[str]:
    """A sentence for every pass whose cost grows clearly faster than its assignments."""
    return [
        f"{row.kind}, the pass that {row.what}: one of {row.size} assignments costs {growth(rows, row):.1f} times what "
        f"one among the fewest does, and over {MOST:g} the cost is not linear: find what is done for each of all others"
        for row in rows
        if growth(rows, row) > MOST
    ]


def main(argv: list[str]) -> int:
    given = argparse.ArgumentParser(prog="python -m tests.bench.holds")
    given.add_argument("--turns", type=int, default=3)
    given.add_argument(
        "--folder", type=Path, default=SHARED_MEMORY if SHARED_MEMORY.is_dir() else tempfile.gettempdir()
    )
    options = given.parse_args(argv)
    warm()
    rows = measure(options.folder, turns=options.turns)
    print(table(rows))
    faults = steep(rows)
    print("\n".join(faults) if faults else f"no pass grows faster than its assignments (at most {MOST:g} times)")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
