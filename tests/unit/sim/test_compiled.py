# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is compiled out of an archive or a stream is taken from the store by its text, and never for another one."""

from __future__ import annotations

import marshal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.sim import enter

HOOK = Path(enter.HERE) / "hook"


class Archive:
    """An archive with one module, imported by a Python of its own that keeps what it compiles in `store`."""

    def __init__(self, place: Path) -> None:
        self.store = place / "store"
        self.store.mkdir()
        self.path = place / "one.zip"

    def write(self, text: str, path: str = "one.zip") -> None:
        self.path = self.path.with_name(path)
        with zipfile.ZipFile(self.path, "w") as archive:
            archive.writestr("module.py", text)

    def run(self) -> str:
        """What the module says when it is imported; of a failure, its traceback."""
        program = (
            f"import sys; sys.path.insert(0, {str(HOOK)!r}); import sim_compiled; "
            f"sim_compiled.keep_in({str(self.store)!r}); sys.path.insert(0, {str(self.path)!r}); import module"
        )
        done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def test_the_code_of_a_text_that_was_seen_is_taken_from_the_store(archive: Archive) -> None:
    archive.write("print('compiled')\n")
    assert archive.run() == "compiled\n"
    [kept] = archive.store.iterdir()
    kept.write_bytes(marshal.dumps(compile("print('stored')\n", "x", "exec")))
    assert archive.run() == "stored\n"


def test_another_text_is_compiled(archive: Archive) -> None:
    archive.write("print('before')\n")
    assert archive.run() == "before\n"
    archive.write("print('after')\n")
    assert archive.run() == "after\n"
    assert len(list(archive.store.iterdir())) == 2


def test_a_traceback_names_the_archive_that_is_run(archive: Archive) -> None:
    text = "def fail():\n    raise ValueError('here')\n\n\nfail()\n"
    archive.write(text)
    assert "one.zip" in archive.run()
    archive.write(text, "other.zip")
    said = archive.run()
    assert "other.zip" in said
    assert "one.zip" not in said


@pytest.mark.parametrize("broken", [b"", b"\xff\xff", marshal.dumps("no code")[:3]])
def test_what_cannot_be_read_is_compiled_again(archive: Archive, broken: bytes) -> None:
    archive.write("print('well')\n")
    archive.run()
    [kept] = archive.store.iterdir()
    kept.write_bytes(broken)
    assert archive.run() == "well\n"


def test_where_nothing_can_be_kept_all_is_compiled(archive: Archive) -> None:
    archive.write("print('well')\n")
    archive.store.rmdir()
    assert archive.run() == "well\n"


def carry(store: Path, text: str, name: str = "carried/module.py") -> str:
    """What a part of the program says that is compiled as where it is carried."""
    program = (
        f"import sys; sys.path.insert(0, {str(HOOK)!r}); import sim_compiled; sim_compiled.keep_in({str(store)!r}); "
        f"exec(compile({text.encode()!r}, {name!r}, 'exec', dont_inherit=True))"
    )
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["carried/module.py", "/usr/lib/bcd/1.0-0/module.py"])
def test_the_code_of_a_part_of_the_program_that_was_seen_is_taken_from_the_store(archive: Archive, name: str) -> None:
    assert carry(archive.store, "print('compiled')\n", name) == "compiled\n"
    [kept] = archive.store.iterdir()
    kept.write_bytes(marshal.dumps(compile("print('stored', __name__)\n", "x", "exec")))
    assert carry(archive.store, "print('compiled')\n") == "stored __main__\n"
    assert carry(archive.store, "print('another')\n") == "another\n"


def test_what_comes_from_elsewhere_is_compiled_and_not_kept(archive: Archive) -> None:
    assert carry(archive.store, "print('own')\n", "/usr/lib/module.py") == "own\n"
    assert list(archive.store.iterdir()) == []
