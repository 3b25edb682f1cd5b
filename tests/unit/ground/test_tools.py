# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts behind the make targets: what they count, copy and find."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools import copy_tree, processes, pythons, results, run_tests
from tests.tools.processes import Started
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


# Stands for make: every part leaves a result; "aside" and "other" wait for each other, "stuck" for ever.
MAKE = """#!/bin/sh
cd "$(dirname "$0")"
echo "$1" >> order
echo "$1 speaks"
wait_for() { while [ ! -e "$1" ]; do sleep 0.05; done; }
case $1 in
    aside) touch aside-is-there; wait_for other-is-there ;;
    other) touch other-is-there; wait_for aside-is-there ;;
    stuck) setsid sleep 1001 & echo $! > pids; env -i sleep 1002 & echo $! >> pids; echo $$ >> pids; trap "" TERM
        touch stuck-is-there; wait; sleep 1003 ;;
    waits) wait_for stuck-is-there; echo $$ >> pids; touch all-are-there; sleep 1004 ;;
    bad) exit 3 ;;
esac
echo '{"passed": 1, "failed": [], "left_out": []}' > results/$1.json
"""
OTHER, BAD, WAITS = (Part(name, "one of the others") for name in ("other", "bad", "waits"))
ASIDE, STUCK = (Part(name, "the one beside", beside=True, first="ready") for name in ("aside", "stuck"))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a make, its results and its logs."""
    (tmp_path / "results").mkdir()
    (tmp_path / "make").write_text(MAKE)
    (tmp_path / "make").chmod(0o755)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(run_tests, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(run_tests, "MAKE", (str(tmp_path / "make"),))
    return tmp_path


@pytest.fixture
def started() -> Iterator[Started]:
    with Started() as started:
        yield started


@pytest.mark.parametrize("parts", [[OTHER, ASIDE], [ASIDE, OTHER]])
def test_a_part_runs_beside_the_others_and_is_shown_whole(
    made: Path, started: Started, capfd: pytest.CaptureFixture[str], parts: list[Part]
) -> None:
    ran = run_tests.run_all(parts, started)
    assert [(each.part, each.result) for each in ran] == [(part, Result(1, (), ())) for part in parts]
    assert (made / "order").read_text().splitlines()[0] == "ready"  # what it changes of this machine, before all
    out = capfd.readouterr().out
    said = [line for line in out.splitlines() if "speaks" in line]
    assert said == ["ready speaks", "other speaks", "aside speaks"]
    assert out.index("=== aside: the one beside\n") > out.index("other speaks")


def test_a_part_alone_runs_in_the_open(made: Path, started: Started, capfd: pytest.CaptureFixture[str]) -> None:
    (made / "other-is-there").touch()
    assert run_tests.run_all([ASIDE], started)[0].result == Result(1, (), ())
    assert capfd.readouterr().out.splitlines()[-1] == "aside speaks"
    assert not (made / "logs").exists()


def test_what_fails_without_a_result_is_one_failure_and_the_others_go_on(made: Path, started: Started) -> None:
    results.save("bad", Result(7, (), ()))  # of an earlier run
    ran = run_tests.run_all([BAD, OTHER, ASIDE], started)
    assert ran[0].result == Result(0, ("make bad: exit status 3",), ())
    assert [each.result.passed for each in ran[1:]] == [1, 1]


def test_a_part_that_cannot_run_is_not_begun(made: Path, started: Started) -> None:
    part = ASIDE._replace(missing=lambda: "QEMU is not installed")
    (made / "aside-is-there").touch()
    ran = run_tests.run_all([OTHER, part], started)
    assert (ran[1].missing, ran[1].result) == ("QEMU is not installed", results.EMPTY)
    assert (made / "order").read_text().split() == ["other"]


def runs(pid: int) -> bool:
    """Whether the process is there, and has not ended."""
    path = Path(f"/proc/{pid}/stat")
    return path.exists() and path.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_broken_off_leaves_no_process(made: Path, number: signal.Signals) -> None:
    """Neither one in a session of its own, nor one without the environment, nor one that takes no request to end."""
    code = (
        "import signal, sys\nfrom pathlib import Path\nfrom tests.tools import processes, results, run_tests\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # what runs in a shell's background ignores it
        "from tests.unit.ground.test_tools import STUCK, WAITS\n"
        "here = Path(sys.argv[1])\nresults.RESULTS, run_tests.LOGS = here / 'results', here / 'logs'\n"
        "run_tests.MAKE, run_tests.PARTS = (str(here / 'make'),), (WAITS, STUCK)\n"
        "processes.PATIENCE = 1.0\nsys.exit(run_tests.main([]))\n"
    )
    with Started() as started:
        argv = (sys.executable, "-c", code, str(made))
        process = started.start(argv, results.TOP, made / "output")
        while not (made / "all-are-there").exists():
            assert process.poll() is None, (made / "output").read_text()
            time.sleep(0.05)
        pids = [int(word) for word in (made / "pids").read_text().split()]
        assert [runs(pid) for pid in pids] == [True] * 4
        process.send_signal(number)
        assert process.wait() == 128 + number
        assert [runs(pid) for pid in pids] == [False] * 4
        assert started.alive() == []
    assert "stuck speaks" in (made / "output").read_text()


def test_what_was_started_is_ended_with_its_block(tmp_path: Path) -> None:
    with Started() as started:
        process = started.start(("sh", "-c", "setsid sleep 1005 & sleep 1006 & echo here"), tmp_path, tmp_path / "said")
        assert process.wait() == 0
        assert len(started.alive()) == 2
    assert started.alive() == []
    assert (tmp_path / "said").read_text() == "here\n"


def test_a_run_within_another_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    outer = Started()
    monkeypatch.setenv(processes.MARK, outer.mark)
    assert Started().mark.startswith(outer.mark)


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
