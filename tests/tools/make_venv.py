# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a virtual environment and install pinned requirements into it.

usage: make_venv.py DIR PYTHON REQUIREMENTS...

An environment that is there and was made by the same Python is kept. Debian ships venv without ensurepip (that is in
python3-venv): then the environment is made without pip, and the Python's own pip installs into it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def runs(argv: list[str]) -> bool:
    """True when the command starts and exits 0; its output is dropped."""
    try:
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def made_by(directory: Path, python: str) -> bool:
    """True when the environment works and stands on this interpreter."""
    own = directory / "bin" / "python"
    if not own.exists():
        return False
    ask = "import sys; print(sys.base_prefix)"
    have = subprocess.run([str(own), "-c", ask], capture_output=True, text=True, check=False).stdout
    want = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False).stdout
    return have == want and have != ""


def create(directory: Path, python: str) -> str | None:
    """Make the environment with a pip in it; returns the sentence of what is missing, or None."""
    shutil.rmtree(directory, ignore_errors=True)
    if runs([python, "-c", "import ensurepip"]):
        subprocess.run([python, "-m", "venv", str(directory)], check=True)
        return None
    if not runs([python, "-m", "pip", "--version"]):
        return f"{python} has neither ensurepip nor pip: install python3-venv (Debian, Ubuntu), then run make again"
    subprocess.run([python, "-m", "venv", "--without-pip", str(directory)], check=True)
    own = str(directory / "bin" / "python")
    if not runs([python, "-m", "pip", "--python", own, "install", "--quiet", "pip"]):
        return f"{python} -m pip cannot install into {directory}: install python3-venv, then run make again"
    return None


def main(argv: list[str]) -> int:
    if len(argv) < 3:
        print(__doc__, file=sys.stderr)
        return 64
    directory, python, requirements = Path(argv[0]), argv[1], argv[2:]
    if not made_by(directory, python):
        print(f"making {directory} with {python}", flush=True)
        missing = create(directory, python)
        if missing:
            print(missing, file=sys.stderr)
            return 1
    install = [str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for path in requirements:
        install += ["-r", path]
    # A virtual environment of the caller must not decide where this pip installs.
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
    done = subprocess.run(install, env=environment, check=False)
    if done.returncode:
        print(f"pip could not install {' '.join(requirements)} into {directory}: see above", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
