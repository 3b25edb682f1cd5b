# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts behind the make targets: what they count, copy and find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import copy_tree, pythons, results, run_tests
from tests.tools.results import Result
from tests.tools.run_tests import Part, Ran

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="5">
<testcase classname="tests.unit.test_a" name="test_one"/>
<testcase classname="tests.unit.test_a" name="test_two"/>
<testcase classname="tests.unit.test_a" name="test_bad"><failure message="no"/></testcase>
<testcase classname="" name="tests.unit.test_b"><error message="collection failure"/></testcase>
<testcase classname="tests.unit.test_a" name="test_not_here"><skipped message="no KVM"/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture
def result_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return tmp_path


def test_a_part_is_the_sum_of_its_result_files(result_folder: Path) -> None:
    (result_folder / "hosts-oldest.xml").write_text(JUNIT)
    (result_folder / "hosts-newest.xml").write_text(JUNIT)
    (result_folder / "hostsmore.xml").write_text(JUNIT)
    results.save("hosts", Result(1, ("lonely",), ()))
    found = results.load("hosts")
    assert found.passed == 5
    assert sorted(found.failed) == ["lonely", *["tests.unit.test_a::test_bad"] * 2, *["tests.unit.test_b"] * 2]
    assert found.left_out == ("tests.unit.test_a::test_not_here: no KVM",) * 2


def test_forgetting_a_part_leaves_the_others(result_folder: Path) -> None:
    results.save("unit", Result(1, (), ()))
    results.save("sim", Result(2, (), ()))
    results.forget("unit")
    assert results.load("unit") == results.EMPTY
    assert results.load("sim") == Result(2, (), ())


def test_with_everything_a_skipped_case_and_a_part_left_out_are_failures() -> None:
    part = Part("lab", "a real Debian")
    skipped = run_tests.strict(Ran(part, Result(3, (), ("test_x: no KVM",)), 1.0, ""))
    assert skipped.result.failed == ("left out: test_x: no KVM",)
    left_out = run_tests.strict(Ran(part, results.EMPTY, 0.0, "QEMU is not installed"))
    assert left_out.result.failed == ("left out: QEMU is not installed",)


def test_the_table_names_what_failed_and_what_was_left_out_and_why() -> None:
    rows = run_tests.table(
        [
            Ran(Part("unit", "plans"), Result(3, ("test_bad",), ("test_x: no KVM",)), 2.0, ""),
            Ran(Part("lab", "a real Debian"), results.EMPTY, 0.0, "QEMU is not installed"),
        ]
    ).splitlines()
    assert [row.split() for row in rows[1:]] == [
        ["unit", "3", "1", "1", "2", "plans"],
        ["left", "out:", "test_x:", "no", "KVM"],
        ["FAILED", "test_bad"],
        ["lab", "0", "0", "all", "0", "a", "real", "Debian"],
        ["left", "out:", "QEMU", "is", "not", "installed"],
    ]


def test_a_part_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SystemExit, match="there is no part labb: take some of lint, unit"):
        run_tests.chosen(["unit", "labb"])


def test_the_copy_holds_what_git_knows_or_would_add_and_nothing_else(tmp_path: Path) -> None:
    top, copy = tmp_path / "top", tmp_path / "copy"
    for name in ("kept.py", "sub/program", "ignored.pyc", "tests/a.txt"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    (top / "sub/program").chmod(0o755)
    (top / "link").symlink_to("kept.py")
    (top / ".gitignore").write_text("*.pyc\n")
    subprocess.run(["git", "init", "--quiet", str(top)], check=True)
    for name in ("stale.py", "gone/deep/old.py", "tests/output/cache"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("old")
    copy_tree.copy(top, copy)
    there = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if not path.is_dir())
    assert there == [".gitignore", "kept.py", "link", "sub/program", "tests/a.txt", "tests/output/cache"]
    assert os.readlink(copy / "link") == "kept.py"
    assert (copy / "sub/program").stat().st_mode & 0o777 == 0o755
    assert not (copy / "gone").exists()


def test_a_changed_file_is_copied_again(tmp_path: Path) -> None:
    top, copy = tmp_path / "top", tmp_path / "copy"
    top.mkdir()
    subprocess.run(["git", "init", "--quiet", str(top)], check=True)
    (top / "a").write_text("one")
    copy_tree.copy(top, copy)
    (top / "a").write_text("two")
    copy_tree.copy(top, copy)
    assert (copy / "a").read_text() == "two"


def test_a_python_that_does_not_start_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyenv puts a shim on PATH for each version it has, and the shim of one that is not selected exits 127."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    shims, real = tmp_path / "shims", tmp_path / "pyenv" / "versions" / f"{version}.7" / "bin"
    for folder, program in ((shims, "exit 127"), (real, f'exec {sys.executable} "$@"')):
        folder.mkdir(parents=True)
        path = folder / f"python{version}"
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert pythons.find(version) == os.path.realpath(sys.executable)


def test_a_python_of_another_version_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "python3.9"
    path.write_text("#!/bin/sh\nprintf '3.8\\n/usr/bin/python3.8\\n'\n")
    path.chmod(0o755)
    assert pythons.real_path(str(path), "3.9") is None
