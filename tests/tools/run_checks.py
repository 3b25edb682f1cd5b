# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every linter over the checkout, past the first that finds something.

usage: python -m tests.tools.run_checks

Must run in the environment that holds the linters.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.tools import results

BIN = Path(sys.executable).parent
COLLECTION = ".build/ansible_collections/bettercompute/bcd"

CHECKS: dict[str, tuple[str, ...]] = {
    "ruff": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
    "mypy": ("mypy", f"{COLLECTION}/plugins", "tests", "extensions"),
    "yamllint": ("yamllint", "--strict", "."),
    "ansible-lint": ("ansible-lint", "--offline", "--profile", "production", "--strict"),
    "antsibull-changelog": ("antsibull-changelog", "lint"),
    "antsibull-docs": (
        "antsibull-docs",
        "lint-collection-docs",
        "--plugin-docs",
        "--skip-rstcheck",
        "--validate-collection-refs=all",
        ".",
    ),
}


def environment() -> dict[str, str]:
    """The caller's environment with this environment's programs first, and a home in the checkout."""
    results.HOME.mkdir(parents=True, exist_ok=True)
    values = dict(os.environ, HOME=str(results.HOME))
    values["PATH"] = os.pathsep.join([str(BIN), values["PATH"]])
    values["NO_COLOR"] = "1"
    return values


def main(argv: list[str]) -> int:
    if argv:
        print(__doc__, file=sys.stderr)
        return 64
    failed = []
    for name, command in CHECKS.items():
        print(f"--- {name}", flush=True)
        program = [str(BIN / command[0]), *command[1:]]
        done = subprocess.run(program, cwd=results.TOP, env=environment(), stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            failed.append(name)
    results.save("lint", results.Result(len(CHECKS) - len(failed), tuple(failed), ()))
    print("lint: " + (", ".join(failed) + " found something" if failed else "nothing found"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
