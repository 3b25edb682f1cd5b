# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every part of the tests that this machine can run, and close with a table of what ran and what did not.

usage: python3 -m tests.tools.run_tests [--everything] [PART ...]

Each part is a make target. They run one after another, and beside them the one that waits for an emulator: what that
prints is kept in .build/logs and shown when it is done. A part that this machine cannot run is left out and named with
the reason. --everything (.ci/run) makes whatever is left out, a skipped case too, a failure. The last line is
"N passed, N failed". However this program ends, but for SIGKILL, no process that it started is left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.browser import chromium
from tests.tools import results
from tests.tools.processes import Started, end_with_the_block
from tests.tools.results import Result

LOGS = results.TOP / ".build" / "logs"
MAKE = ("make", "--no-print-directory")
# The part that runs aside keeps one core busy and is the last to end, so that the others take what it leaves.
NICE = ("nice", "-n", "10")


class Part(NamedTuple):
    name: str  # the make target, and the name of its results
    what: str  # for the table
    missing: Callable[[], str] = lambda: ""  # what this machine lacks for it, as a sentence; "" when it can run
    beside: bool = False  # it leaves a core free for most of its time: it runs beside the others
    first: str = ""  # a make target of such a part, made before anything else begins: it changes this machine


class Ran(NamedTuple):
    part: Part
    result: Result
    seconds: float
    missing: str  # why it did not run; "" when it did


def lab_missing() -> str:
    """The lab boots a machine in QEMU, whose packages it installs itself where it is root on a Debian."""
    if os.getuid() == 0 and shutil.which("apt-get"):
        return ""
    argv = [sys.executable, str(results.TOP / "tests" / "lab" / "lab.py"), "check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else (said[-1] if said else f"lab.py check exited with {done.returncode}")


PARTS = (
    Part("lint", "ruff, mypy, yamllint, ansible-lint, antsibull"),
    Part("unit", "plans, looks, core and tools under the newest Python"),
    Part("hosts", "the modules' code under the oldest Python, without Ansible"),
    Part("sanity", "ansible-test sanity, every Python of this machine"),
    Part("build", "the Galaxy tarball, installed elsewhere"),
    Part("docs", "the documentation pages"),
    Part("sim", "roles and modules on simulated hosts, newest ansible-core"),
    Part("oldest", "roles and modules on simulated hosts, ansible-core 2.16"),
    Part("molecule", "molecule scenarios on simulated hosts"),
    Part("demo", "the demo"),
    Part("browser", "the report's page in a real Chromium", chromium.missing),
    Part("lab", "a real Debian in QEMU", lab_missing, beside=True, first="lab-packages"),
)


def run(part: Part, started: Started, output: Path | None = None, yielding: bool = False) -> Ran:
    """Run one part by its make target; a target that fails without naming a failed case counts as one failure.

    output: the file for what it prints. yielding: other processes of this machine go first.
    """
    missing = part.missing()
    if missing:
        return Ran(part, results.EMPTY, 0.0, missing)
    results.forget(part.name)
    start = time.monotonic()
    argv = (*(NICE if yielding else ()), *MAKE, part.name)
    status = started.start(argv, results.TOP, output).wait()
    seconds = time.monotonic() - start
    result = results.load(part.name)
    if status and not result.failed:
        result = results.add(result, Result(0, (f"make {part.name}: exit status {status}",), ()))
    if not status and result == results.EMPTY:
        result = Result(1, (), ())
    return Ran(part, result, seconds, "")


def log(part: Part) -> Path:
    """What a part prints that runs beside the others."""
    return LOGS / f"{part.name}.log"


def title(part: Part, more: str = "") -> None:
    """Say which part is next."""
    print(f"\n=== {part.name}: {part.what}{more}", flush=True)


def show(part: Part) -> None:
    """What a part has printed that ran beside the others, whole."""
    if log(part).exists():
        title(part)
        print(log(part).read_text(errors="replace"), end="", flush=True)


def run_all(parts: list[Part], started: Started) -> list[Ran]:
    """Run the parts, one after another but for those that run beside them; in the order of `parts`."""
    aside = [part for part in parts if part.beside and len(parts) > 1 and not part.missing()]
    for part in aside:
        log(part).unlink(missing_ok=True)
        title(part, f": make {part.first}, then beside the others, with its output in {os.path.relpath(log(part))}")
        started.start((*MAKE, part.first), results.TOP).wait()  # the part itself says it when this failed
    done = {}
    # The processes end before the pool waits for the threads that wait for them.
    with ExitStack() as leaving:
        pool = leaving.enter_context(ThreadPoolExecutor(max_workers=len(parts)))
        leaving.enter_context(started)
        running = {part: pool.submit(run, part, started, log(part)) for part in aside}
        try:
            for part in [part for part in parts if part not in aside]:
                title(part)
                done[part] = run(part, started, yielding=bool(aside))
                for over in [each for each, future in running.items() if future.done()]:
                    show(over)
                    done[over] = running.pop(over).result()
            for part in list(running):
                done[part] = running[part].result()
                show(part)
                del running[part]
        finally:  # what is still here has been broken off
            for part in running:
                show(part)
    return [done[part] for part in parts]


def strict(ran: Ran) -> Ran:
    """With --everything, what was left out has failed."""
    left = [f"left out: {line}" for line in ran.result.left_out]
    if ran.missing:
        left.append(f"left out: {ran.missing}")
    return ran._replace(result=results.add(ran.result, Result(0, tuple(left), ())))


def table(all_ran: list[Ran]) -> str:
    """A row a part, and below it a line for each failure and each thing left out."""
    lines = [f"{'part':<10} {'passed':>6} {'failed':>6} {'left out':>8} {'seconds':>8}  what"]
    for part, result, seconds, missing in all_ran:
        left = "all" if missing else str(len(result.left_out))
        counts = f"{result.passed:>6} {len(result.failed):>6} {left:>8} {seconds:>8.0f}"
        lines.append(f"{part.name:<10} {counts}  {part.what}")
        if missing:
            lines.append(f"{'':<10} left out: {missing}")
        lines += [f"{'':<10} left out: {line}" for line in result.left_out]
        lines += [f"{'':<10} FAILED {name}" for name in result.failed]
    return "\n".join(lines)


def chosen(names: list[str]) -> list[Part]:
    """The parts of these names, in the order of PARTS; all of them without a name."""
    unknown = sorted(set(names) - {part.name for part in PARTS})
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}: take some of {', '.join(p.name for p in PARTS)}")
    return [part for part in PARTS if not names or part.name in names]


def main(argv: list[str]) -> int:
    everything = "--everything" in argv
    end_with_the_block()
    start = time.monotonic()
    with Started() as started:
        all_ran = run_all(chosen([word for word in argv if word != "--everything"]), started)
    if everything:
        all_ran = [strict(ran) for ran in all_ran]
    passed = sum(ran.result.passed for ran in all_ran)
    failed = sum(len(ran.result.failed) for ran in all_ran)
    print(
        f"\n{table(all_ran)}\n\n{time.monotonic() - start:.0f} seconds in all\n{passed} passed, {failed} failed",
        flush=True,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
