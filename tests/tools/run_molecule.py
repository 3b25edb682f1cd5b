# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the molecule scenarios, one after the other and past one that fails.

usage: python -m tests.tools.run_molecule [--lab]

Without --lab, the scenarios on simulated hosts; with it, those whose names start with lab, which boot a real machine.
Must run in the environment that holds molecule.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.tools import results

BIN = Path(sys.executable).parent
SCENARIOS = results.TOP / "extensions" / "molecule"


def scenarios(lab: bool) -> list[str]:
    """The names of the scenarios of one kind."""
    names = sorted(path.parent.name for path in SCENARIOS.glob("*/molecule.yml"))
    return [name for name in names if name.startswith("lab") == lab]


def environment() -> dict[str, str]:
    """The caller's environment with this environment's programs first, and the checkout as the collection."""
    values = dict(os.environ)
    values["PATH"] = os.pathsep.join([str(BIN), values["PATH"]])
    values["ANSIBLE_COLLECTIONS_PATH"] = str(results.TOP / ".build")
    values["NO_COLOR"] = "1"
    return values


def passes(name: str) -> bool:
    """True when the whole sequence of the scenario, from create to destroy, succeeds."""
    print(f"--- molecule {name}", flush=True)
    argv = [str(BIN / "molecule"), "test", "--scenario-name", name]
    done = subprocess.run(argv, cwd=results.TOP, env=environment(), stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def main(argv: list[str]) -> int:
    if argv not in ([], ["--lab"]):
        print(__doc__, file=sys.stderr)
        return 64
    names = scenarios(lab=bool(argv))
    failed = tuple(f"molecule {name}" for name in names if not passes(name))
    if not names:
        failed = (f"there is no such scenario in {SCENARIOS.relative_to(results.TOP)}",)
    passed = len(names) - len(failed) if names else 0
    results.save("lab-molecule" if argv else "molecule", results.Result(passed, failed, ()))
    print(f"molecule: {passed} passed" + (f", failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
