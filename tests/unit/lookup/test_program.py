# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program's zip: the same bytes from the same sources, and nothing in it that a host has not."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible import constants
from ansible.errors import AnsibleError

from ansible_collections.bettercompute.bcd.plugins.lookup.program import LookupModule
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program import SOURCES, Program, program
from tests.tools import pythons
from tests.tools.results import TOP

MAKE = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program import program
print(hashlib.sha256(program(sys.argv[2]).data).hexdigest())
"""
OLDEST = pythons.find("3.9")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of module_utils as it is now, whatever is edited meanwhile."""
    copied: Path = tmp_path_factory.mktemp("sources") / "module_utils"
    shutil.copytree(SOURCES, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


@pytest.fixture(scope="module")
def made(sources: Path) -> Program:
    return program(str(sources))


@pytest.fixture
def zipped(made: Program) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(made.data))


def sources_of(zipped: zipfile.ZipFile) -> dict[str, str]:
    return {name: zipped.read(name).decode() for name in zipped.namelist()}


def test_sources_laid_down_otherwise_make_the_same_bytes(made: Program, sources: Path, tmp_path: Path) -> None:
    names = sorted(str(path.relative_to(sources)) for path in sources.rglob("*.py"))
    before = os.umask(0o077)
    try:
        for name in reversed(names):  # a directory lists its files as they came
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(sources / name, tmp_path / name)
            os.utime(tmp_path / name, (1, 1))
            (tmp_path / name).chmod(0o700)
    finally:
        os.umask(before)
    (tmp_path / "core" / "__pycache__").mkdir()
    (tmp_path / "core" / "__pycache__" / "host.cpython-39.pyc").write_bytes(b"old")
    (tmp_path / "core" / "notes.txt").write_text("not code")
    assert program(str(tmp_path)).data == made.data


def test_changed_sources_make_other_bytes(made: Program, sources: Path, tmp_path: Path) -> None:
    shutil.copytree(sources, tmp_path / "sources")
    with (tmp_path / "sources" / "core" / "errors.py").open("a") as out:
        out.write("#")
    assert program(str(tmp_path / "sources")).sha256 != made.sha256


@pytest.mark.parametrize("python", [sys.executable, *([OLDEST] if OLDEST else [])])
def test_every_python_and_locale_makes_the_same_bytes(made: Program, sources: Path, python: str) -> None:
    odd = {"LC_ALL": "tr_TR.ISO-8859-9", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "PATH": os.environ["PATH"]}
    argv = [python, "-Ic", MAKE, str(TOP / ".build"), str(sources)]
    done = subprocess.run(argv, env=odd, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == made.sha256


def test_entries_are_sorted_stored_and_have_no_time_nor_mode_of_their_own(zipped: zipfile.ZipFile) -> None:
    entries = zipped.infolist()
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    kinds = {(entry.date_time, entry.compress_type, entry.external_attr, entry.create_system) for entry in entries}
    assert kinds == {((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED, 0o100644 << 16, 3)}


def test_all_of_module_utils_is_in_it_but_what_is_ansibles(zipped: zipfile.ZipFile, sources: Path) -> None:
    code = {f"bcd/{path.relative_to(sources).as_posix()}" for path in sources.rglob("*.py")}
    assert set(zipped.namelist()) == code - {"bcd/front/module.py"} | {"__main__.py"}


def test_nothing_but_the_standard_library_is_imported(zipped: zipfile.ZipFile) -> None:
    """cryptography, where something is signed, is the one exception; the program's own is imported relatively."""
    wrong = []
    for name, text in sources_of(zipped).items():
        allowed = sys.stdlib_module_names | ({"cryptography"} if name.startswith("bcd/intent/") else set())
        allowed |= {"bcd"} if name == "__main__.py" else set()
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            wrong += [f"{name} imports {found}" for found in names if found.partition(".")[0] not in allowed]
    assert wrong == []


def test_python_runs_the_zip_with_nothing_but_itself(made: Program, tmp_path: Path) -> None:
    (tmp_path / made.name).write_bytes(made.data)
    argv = [sys.executable, "-ISB", str(tmp_path / made.name)]
    done = subprocess.run([*argv, "--version"], capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"bcd {made.version}\n", "")
    wrong = subprocess.run([*argv, "fly"], capture_output=True, text=True, check=False, cwd="/")
    assert wrong.returncode == 64
    assert "'fly'" in wrong.stderr


def test_the_lookup_leaves_the_whole_file_in_the_run_s_own_folder(
    made: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible_collections.bettercompute.bcd.plugins.lookup.program.program", lambda: made)
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    lookup = LookupModule()
    first, again = lookup.run([]), lookup.run([])
    path = tmp_path / f"bcd-{made.version}.pyz"
    assert first == again == [{"path": str(path), "version": made.version, "sha256": made.sha256}]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == made.sha256
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    with pytest.raises(AnsibleError, match="takes no terms"):
        lookup.run(["bcd"])
