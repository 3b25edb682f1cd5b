# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy the files that git knows, or would add, into another folder and make that a repository of its own.

usage: copy_tree.py DIR

ansible-test asks git for the files and follows no link, so it needs a real copy below ansible_collections. A file that
is equal already is left alone; one that is gone here goes there too; DIR's tests/output (ansible-test's own) stays.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

KEPT = (".git", "tests/output")


def known_files(top: Path) -> list[str]:
    """Paths, relative to the checkout, of all files tracked or untracked and not ignored that exist."""
    argv = ["git", "-C", str(top), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted({name for name in names if name and os.path.lexists(top / name)})


def is_same(source: Path, target: Path) -> bool:
    """True when both are equal links, or equal files of equal mode."""
    if source.is_symlink() or target.is_symlink():
        return source.is_symlink() and target.is_symlink() and os.readlink(source) == os.readlink(target)
    if not target.is_file():
        return False
    return source.stat().st_mode == target.stat().st_mode and filecmp.cmp(source, target, shallow=False)


def copy(top: Path, directory: Path) -> None:
    """Make the directory hold exactly the known files of the checkout."""
    names = known_files(top)
    for name in names:
        source, target = top / name, directory / name
        if is_same(source, target):
            continue
        if target.is_symlink() or target.is_file():
            target.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
    wanted = set(names)
    for path in sorted(directory.rglob("*"), reverse=True):
        name = path.relative_to(directory).as_posix()
        if any(name == kept or name.startswith(kept + "/") for kept in KEPT):
            continue
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif name not in wanted:
            path.unlink()


def commit(directory: Path) -> None:
    """Put the copied files into the copy's own git index, which is what ansible-test reads."""
    if not (directory / ".git").is_dir():
        subprocess.run(["git", "init", "--quiet", str(directory)], check=True)
    subprocess.run(["git", "-C", str(directory), "add", "--all", "."], check=True)


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 64
    directory = Path(argv[0])
    directory.mkdir(parents=True, exist_ok=True)
    copy(Path(__file__).resolve().parents[2], directory)
    commit(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
