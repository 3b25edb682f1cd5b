# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A managed host brings a Python and its standard library, nothing else; and what is imported costs it time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
ROOM = "ansible_collections.bettercompute.bcd.plugins.module_utils"
# Ansible is there only inside a module's run: of what imports it, and what stands on that.
NEEDS_ANSIBLE = ("\nfrom ansible.module_utils", "\nfrom .module import")


def module_names() -> list[str]:
    """The dotted name of each file of module_utils that runs without Ansible too."""
    room = TOP / "plugins" / "module_utils"
    paths = [path for path in sorted(room.rglob("*.py")) if not needs_ansible(path)]
    parts = (path.relative_to(room).with_suffix("").parts for path in paths)
    return [".".join((ROOM, *(part for part in own if part != "__init__"))) for own in parts]


def needs_ansible(path: Path) -> bool:
    """True for the front of the modules."""
    return path.parent.name == "front" and any(words in path.read_text(encoding="utf-8") for words in NEEDS_ANSIBLE)


def python(code: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run the code in a fresh interpreter that finds the collection and no installed package."""
    argv = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(TOP / '.build')!r}); {code}"]
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=False)


# Of the names on its standard input, those that a process cannot import that has none of ours yet.
EACH_ALONE = """
import os, traceback
import hashlib, json, re, ssl, subprocess, tempfile, typing  # of the standard library what most would import anew
for name in sys.stdin.read().split():
    child = os.fork()
    if not child:
        try:
            __import__(name)
        except BaseException:
            print(name, traceback.format_exc(), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name, "ended its process")
"""


def test_each_file_imports_with_the_standard_library_alone() -> None:
    done = python(EACH_ALONE, " ".join(module_names()))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_what_cannot_be_imported_is_named() -> None:
    done = python(EACH_ALONE, f"{ROOM}.core.host {ROOM}.core.missing pytest no_such_package")
    failed = [line.split(maxsplit=1)[0] for line in done.stdout.splitlines() if "Traceback" in line]
    assert failed == [f"{ROOM}.core.missing", "pytest", "no_such_package"]


@pytest.mark.parametrize("name", [name for name in module_names() if f"{ROOM}.units." in name])
def test_a_unit_imports_no_dataclasses(name: str) -> None:
    """dataclasses alone costs 5 to 19 ms at every run on every host."""
    done = python(f"import {name}; sys.exit('dataclasses' in sys.modules)")
    assert done.returncode == 0, done.stderr
