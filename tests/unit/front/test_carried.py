# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program carried on a Python's standard input, and what is made once in a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.release import VERSION
from ansible_collections.bettercompute.bcd.plugins.plugin_utils import carried, program
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.once_a_run import once

SAYS = ";from bcd.front.cli import main;main(['--version']);import sys;print(sys.stdin.read())"


def start(before: str, after: str) -> subprocess.CompletedProcess[bytes]:
    """A Python that is given the payload and a request, and runs the start between these words."""
    words = [sys.executable, "-I", "-c", before + carried.START + after]
    return subprocess.run(words, input=carried.payload() + b"the request", capture_output=True, check=False, cwd="/")


def test_a_python_without_the_program_runs_it_and_leaves_it_the_request() -> None:
    done = start("", SAYS)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == f"bcd {VERSION}\nthe request\n".encode()


def test_a_python_that_is_too_old_says_so_and_runs_nothing() -> None:
    done = start("import sys;sys.version_info=(3,8,20);", ";print('ran')")
    assert (done.returncode, done.stdout, done.stderr) == (carried.TOO_OLD, b"", b"")


def test_a_python_that_is_too_old_reads_all_the_same() -> None:
    """To write to a program that ended is an error, and to ssh a host that cannot be reached."""
    words = [sys.executable, "-I", "-c", "import sys;sys.version_info=(3,8,20);" + carried.START]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.write(carried.payload() + b"x" * 1_000_000)
    assert child.returncode == carried.TOO_OLD


def test_what_is_not_carried_is_not_found_and_the_librarys_own_is() -> None:
    done = start("", ";import bcd.core.errors,json;print(json.dumps(1));import bcd.front.module")
    assert done.stdout == b"1\n"
    assert b"No module named 'bcd.front.module'" in done.stderr  # it is Ansible's


def test_a_fault_in_a_part_names_its_file_and_line() -> None:
    done = start("", ";from bcd.core.host import Host;Host.ask(None,None)")
    assert b'File "carried/bcd/core/host.py", line ' in done.stderr


def test_it_is_the_same_code_as_where_it_is_installed() -> None:
    done = start("", ";from bcd.core.code_id import code_id;print(code_id())")
    assert done.stdout.decode().strip() == program.program().sha256


def test_it_answers_a_request_of_its_own_code_alone() -> None:
    asked = {"version": VERSION, "module": "host_plan", "params": {}, "check": True}
    for code, more, status in (("0" * 64, {}, 69), (program.program().sha256, {"params": 3}, 64)):
        words = [sys.executable, "-I", "-c", carried.ANSWER]
        text = json.dumps({**asked, "code": code, **more}).encode()
        done = subprocess.run(words, input=carried.payload() + text, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (status, b"")


def test_the_same_code_is_the_same_bytes() -> None:
    assert carried.payload() == carried.payload()


def test_a_run_makes_it_once_whoever_asks(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:

            def make() -> bytes:
                with open(marks, "a", encoding="ascii") as out:
                    out.write("made\n")
                return b"x" * 100_000

            os._exit(0 if once(str(tmp_path), "thing", make) == b"x" * 100_000 else number + 1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 8
    assert marks.read_text(encoding="ascii") == "made\n"


def test_what_could_not_be_made_is_made_by_the_next(tmp_path: Path) -> None:
    def fails() -> bytes:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        once(str(tmp_path), "thing", fails)
    assert once(str(tmp_path), "thing", lambda: b"y") == b"y"
