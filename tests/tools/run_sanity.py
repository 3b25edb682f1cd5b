# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-test sanity on a copy of the checkout, with every Python of this machine.

usage: python -m tests.tools.run_sanity [ARGUMENTS OF ansible-test sanity]

Must run in the environment that holds ansible-core. Nothing is read from or left in the user's home.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ansible_test._internal import python_requirements

from tests.tools import results

TOOLS = results.TOP / "tests" / "tools"
BUILD = results.TOP / ".build"
COPY = BUILD / "sanity" / "ansible_collections" / "bettercompute" / "bcd"
HOME = BUILD / "sanity" / "home"


class AnyPython:
    """What ansible-test asks a Python for when it names the pip to install: its version."""

    version = f"{sys.version_info[0]}.{sys.version_info[1]}"


def own_pip_configuration() -> Path | None:
    """The user's pip configuration, which pip would no longer find below another HOME."""
    for name in (".config/pip/pip.conf", ".pip/pip.conf"):
        path = Path.home() / name
        if path.is_file():
            return path
    return None


def environment() -> dict[str, str]:
    """ansible-test's environment: a home of its own, this venv's tools and every Python first on PATH."""
    values = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    values["HOME"] = str(HOME)
    values["LC_ALL"] = "C.UTF-8"
    values["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), str(BUILD / "pythons"), os.environ["PATH"]])
    return values


def link_pip_configuration() -> None:
    """Let the pip that ansible-test runs see the user's index settings."""
    own = own_pip_configuration()
    target = HOME / ".config" / "pip" / "pip.conf"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if own:
        target.symlink_to(own)


def sanity(words: list[str]) -> int:
    """Run it, show its output without pip's chatter, leave the result; returns its exit status."""
    argv = [str(Path(sys.executable).parent / "ansible-test"), "sanity", "--color", "no", "--venv", *words]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        argv, cwd=COPY, env=environment(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, text=True
    )
    lines = []
    for line in process.stdout or ():
        lines.append(line.rstrip())
        if line.startswith(("Running sanity", "ERROR", "FATAL", "See documentation", "WARNING: Skipping")):
            print(line, end="", flush=True)
    status = process.wait()
    if status and not any(line.startswith("ERROR") for line in lines):
        print("\n".join(lines[-40:]))
    results.save("sanity", counted(lines, status))
    return status


def counted(lines: list[str], status: int) -> results.Result:
    """ansible-test names each test as it starts it, and at the end, after a FATAL line, those that failed."""
    started = [line.removeprefix("Running sanity test ") for line in lines if line.startswith("Running sanity test ")]
    failed: list[str] = []
    for number, line in enumerate(lines):
        if line.startswith("FATAL: The ") and "sanity test(s) listed below" in line:
            failed = [name for name in lines[number + 1 :] if name and not name.startswith("FATAL")]
    if status and not failed:
        failed = [f"ansible-test sanity: exit status {status}"]
    return results.Result(max(len(started) - len(failed), 0), tuple(failed), ())


def main(argv: list[str]) -> int:
    pip = python_requirements.get_venv_packages(AnyPython())["pip"]
    for command in (
        [str(TOOLS / "pythons.py"), "link", str(BUILD / "pythons")],
        [str(TOOLS / "copy_tree.py"), str(COPY)],
        [str(TOOLS / "get_pip.py"), str(HOME), pip],
    ):
        done = subprocess.run([sys.executable, *command], check=False)
        if done.returncode:
            return done.returncode
    link_pip_configuration()
    return sanity(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
