# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every part of the tests that this machine can run, and close with a table of what ran and what did not.

usage: python3 -m tests.tools.run_tests [--everything] [PART ...]

Each part is a make target. A part that this machine cannot run is left out and named with the reason. --everything
(.ci/run) makes whatever is left out, a skipped case too, a failure. The last line is "N passed, N failed".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.tools import results
from tests.tools.results import Result


class Part(NamedTuple):
    name: str  # the make target, and the name of its results
    what: str  # for the table
    missing: Callable[[], str] = lambda: ""  # what this machine lacks for it, as a sentence; "" when it can run


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
    Part("hosts", "the modules' code under the oldest and the newest Python"),
    Part("sanity", "ansible-test sanity, every Python of this machine"),
    Part("build", "the Galaxy tarball, installed elsewhere"),
    Part("docs", "the documentation pages"),
    Part("sim", "roles and modules on simulated hosts, newest ansible-core"),
    Part("oldest", "roles and modules on simulated hosts, ansible-core 2.16"),
    Part("molecule", "molecule scenarios on simulated hosts"),
    Part("demo", "the demo"),
    Part("lab", "a real Debian in QEMU", lab_missing),
)


def run(part: Part) -> Ran:
    """Run one part by its make target; a target that fails without naming a failed case counts as one failure."""
    missing = part.missing()
    if missing:
        return Ran(part, results.EMPTY, 0.0, missing)
    results.forget(part.name)
    print(f"\n=== {part.name}: {part.what}", flush=True)
    start = time.monotonic()
    done = subprocess.run(["make", "--no-print-directory", part.name], cwd=results.TOP, check=False)
    seconds = time.monotonic() - start
    result = results.load(part.name)
    if done.returncode and not result.failed:
        result = results.add(result, Result(0, (f"make {part.name}: exit status {done.returncode}",), ()))
    if not done.returncode and result == results.EMPTY:
        result = Result(1, (), ())
    return Ran(part, result, seconds, "")


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
    all_ran = []
    for part in chosen([word for word in argv if word != "--everything"]):
        ran = run(part)
        all_ran.append(strict(ran) if everything else ran)
    passed = sum(ran.result.passed for ran in all_ran)
    failed = sum(len(ran.result.failed) for ran in all_ran)
    print(f"\n{table(all_ran)}\n\n{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
