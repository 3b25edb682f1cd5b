# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the Python interpreters of this machine: on PATH, in pyenv's versions, below /usr.

usage: pythons.py best        the newest that ansible-core and the tests can run on
       pythons.py old-core    the one for the oldest supported ansible-core
       pythons.py host-oldest the oldest that a managed host may have
       pythons.py 3.9         that version
       pythons.py link DIR    put a link pythonX.Y for each version found into DIR (ansible-test looks them up on PATH)

A name on PATH is believed only after it has run: pyenv's shims exist for versions that they then refuse to start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

KNOWN = ("3.9", "3.10", "3.11", "3.12", "3.13")
# A controller needs 3.10 for the oldest pinned ansible-core in tests/requirements/controller.txt.
BEST = ("3.13", "3.12", "3.11", "3.10")
# ansible-core 2.16 runs on 3.10 to 3.12.
OLDEST_CORE = ("3.12", "3.11", "3.10")


def candidates(version: str) -> list[str]:
    """Paths where an interpreter of this version (such as "3.12") may lie, the preferred first."""
    name = "python" + version
    found = [shutil.which(name)]
    root = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")
    by_patch = sorted(Path(root, "versions").glob(version + ".*"), key=patch_level, reverse=True)
    found += [str(path / "bin" / name) for path in by_patch]
    found += [f"/usr/local/bin/{name}", f"/usr/bin/{name}"]
    return [path for path in found if path]


def patch_level(path: Path) -> int:
    """The last number of a version's folder, 18 for 3.9.18; -1 where it is none (3.14-dev)."""
    last = path.name.rpartition(".")[2]
    return int(last) if last.isdigit() else -1


def real_path(path: str, version: str) -> str | None:
    """The interpreter itself behind a path (a shim, a link), or None when it does not run as that version."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"
    try:
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != 2 or lines[0] != version:
        return None
    return os.path.realpath(lines[1])


def find(version: str) -> str | None:
    """The path of the interpreter of one version, or None."""
    for path in candidates(version):
        real = real_path(path, version)
        if real:
            return real
    return None


def first(versions: tuple[str, ...]) -> str | None:
    """The path of the first version of the list that this machine has, or None."""
    for version in versions:
        path = find(version)
        if path:
            return path
    return None


def link(directory: Path) -> list[str]:
    """Fill the directory with links pythonX.Y to the interpreters found; returns the versions."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("python*"):
        old.unlink()
    have = []
    for version in KNOWN:
        path = find(version)
        if path:
            (directory / ("python" + version)).symlink_to(path)
            have.append(version)
    return have


def main(argv: list[str]) -> int:
    if len(argv) == 2 and argv[0] == "link":
        print(" ".join(link(Path(argv[1]))))
        return 0
    wanted = {"best": BEST, "old-core": OLDEST_CORE, "host-oldest": KNOWN}
    if len(argv) != 1 or (argv[0] not in wanted and argv[0] not in KNOWN):
        print(__doc__, file=sys.stderr)
        return 64
    versions = wanted.get(argv[0], (argv[0],))
    path = first(versions)
    if path is None:
        names = " or ".join(versions)
        print(f"no Python {names} on PATH, in pyenv or below /usr: install one of them", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
