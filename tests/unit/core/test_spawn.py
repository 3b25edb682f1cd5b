# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are run: what they get of this process, what comes back, and how one ends that does not end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import spawn
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Hung
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.seen import Answer

MUCH = "0123456789abcdef" * 40_000  # bytes, ten times what a pipe holds


def sh(script: str, timeout: float = 20.0, stdin: str = "") -> Answer:
    return spawn.spawned("/bin/sh", ("sh", "-c", script), timeout, stdin, {"PATH": "/usr/bin:/bin"})


def test_its_status_and_what_it_says_come_back() -> None:
    assert sh("echo out; echo err >&2; exit 3") == Answer(3, "out\n", "err\n")
    assert sh("kill -9 $$").rc == -9
    assert sh("printf 'a\\377b'").out == "a\ufffdb"


def test_much_goes_in_and_comes_out_at_once() -> None:
    assert sh("cat", stdin=MUCH) == Answer(0, MUCH)
    assert sh("cat >&2", stdin=MUCH) == Answer(0, "", MUCH)
    assert sh("head -c 5", stdin=MUCH) == Answer(0, MUCH[:5])
    assert sh("exit 0", stdin=MUCH) == Answer(0, "")


def test_it_has_nothing_of_this_process_but_three_descriptors(tmp_path: Path) -> None:
    left = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(left, True)
    try:
        assert sh("ls /proc/$$/fd").out.split() == ["0", "1", "2"]
    finally:
        os.close(left)
    assert sh("env").out.splitlines() == ["PATH=/usr/bin:/bin", "PWD=/"]


def test_it_runs_in_the_root_and_this_process_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sh("pwd").out == "/\n"
    assert os.getcwd() == str(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert sh("pwd").out == "/\n"
    with pytest.raises(FileNotFoundError):
        os.getcwd()


def test_it_leads_a_session_and_a_broken_pipe_ends_it() -> None:
    of_it = sh("cut -d' ' -f1,5,6 /proc/$$/stat").out.split()
    assert len(of_it) == 3
    assert len({*of_it}) == 1  # process, group and session have one number
    assert os.getsid(0) != int(of_it[0])
    blocked, ignored, caught = (int(line.split()[1], 16) for line in _signals(sh("cat /proc/self/status").out))
    assert (blocked & ~_own("SigBlk"), ignored & 1 << 12, ignored & 1 << 24, caught) == (0, 0, 0, 0)


def _signals(status: str) -> list[str]:
    return [line for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]


def _own(kind: str) -> int:
    lines = _signals(Path("/proc/self/status").read_text())
    return next(int(line.split()[1], 16) for line in lines if line.startswith(kind))


@pytest.mark.parametrize("closed", [(0,), (1, 2), (0, 1, 2)])
def test_descriptors_that_this_process_lacks_do_not_confuse_it(closed: tuple[int, ...]) -> None:
    assert _apart(lambda: sh("cat; echo out; echo err >&2", stdin="in ") == Answer(0, "in out\n", "err\n"), closed)
    assert _apart(lambda: sh("cat; echo out; echo err >&2") == Answer(0, "out\n", "err\n"), closed)


def _apart(is_right: Callable[[], bool], closed: tuple[int, ...]) -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for descriptor in closed:
                os.close(descriptor)
            status = 0 if is_right() else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def test_no_descriptor_is_left_open() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    sh("cat", stdin="given")
    with pytest.raises(FileNotFoundError):
        spawn.spawned("/nowhere/program", ("program",), 1, "given", {})
    with pytest.raises(Hung):
        sh("sleep 61.25", timeout=0.05)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_what_may_not_be_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("no program\n")
    for mode, fault in ((0o644, PermissionError), (0o755, OSError)):
        (tmp_path / "program").chmod(mode)
        with pytest.raises(fault, match="program") as seen:
            Host().ask((str(tmp_path / "program"),))
        assert seen.value.filename == str(tmp_path / "program")
    assert Host().ask((str(tmp_path / "none"),)).rc == Host().ask(("program-of-nobody",)).rc == 127


def test_one_that_closes_its_outputs_is_waited_for() -> None:
    start = time.monotonic()
    assert sh("exec >&- 2>&-; sleep 0.3; exit 5").rc == 5
    assert time.monotonic() - start >= 0.3
    with pytest.raises(Hung):
        sh("exec >&- 2>&-; sleep 61.75", timeout=0.2)
    assert _ends("61.75")


def test_one_that_is_about_to_end_is_looked_at_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program's outputs close just before it has ended: a look that comes in between must not cost a pass much."""
    naps: list[float] = []
    there = time.sleep

    def noted(seconds: float) -> None:
        naps.append(seconds)
        there(seconds)

    monkeypatch.setattr(time, "sleep", noted)
    assert sh("exec >&- 2>&-; sleep 0.5").rc == 0
    assert sum(naps[:3]) < 0.005
    assert len(naps) < 40  # and one that takes its time costs next to nothing


def test_one_that_does_not_end_when_asked_is_made_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "GRACE", 0.2)
    with pytest.raises(Hung, match=r"sh -c .* did not end within 0.2 seconds: see what it waits for"):
        sh("trap '' TERM; sleep 62.5; sleep 62.5", timeout=0.2)
    assert _ends("62.5")


def test_a_package_manager_is_asked_and_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "GRACE", 0.2)
    program, asked, done = tmp_path / "dpkg", tmp_path / "asked", tmp_path / "done"
    program.write_text(f"#!/bin/sh\ntrap 'echo >{asked}' TERM\nsleep 0.6 & wait; wait\necho >{done}\n")
    program.chmod(0o755)
    with pytest.raises(Hung):
        spawn.spawned(str(program), ("env", "A=b", "dpkg", "--configure"), 0.2, "", {"PATH": "/usr/bin:/bin"})
    end = time.monotonic() + 10
    while not done.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert (asked.exists(), done.exists()) == (True, True)


def test_where_there_are_no_sessions_for_it_it_leads_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    there = os.posix_spawn

    def without(*given: Any, **named: Any) -> int:
        if "setsid" in named:
            raise NotImplementedError
        return there(*given, **named)

    monkeypatch.setattr(os, "posix_spawn", without)
    number, group, session = sh("cut -d' ' -f1,5,6 /proc/$$/stat").out.split()
    assert (group, int(session)) == (number, os.getsid(0))
    with pytest.raises(Hung):
        sh("sleep 63.5 & wait", timeout=0.1)
    assert _ends("63.5")


def test_where_nobody_is_told_of_children_it_counts_as_done() -> None:
    script = (
        "import signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); from tests.unit.core.test_spawn import sh; "
        "sys.exit(sh('echo said; exit 3').out != 'said\\n')"
    )
    assert (
        os.spawnve(
            os.P_WAIT, sys.executable, [sys.executable, "-c", script], {**os.environ, "PYTHONPATH": ":".join(sys.path)}
        )
        == 0
    )


def _ends(word: str) -> bool:
    """Whether what has this word ends: what a program has started may take its signal a moment after it."""
    end = time.monotonic() + 10
    while _running(word) and time.monotonic() < end:
        time.sleep(0.02)
    return not _running(word)


def _running(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [str(path)] if word.encode() in path.read_bytes().split(b"\0") else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("argv", "variables", "words"),
    [
        (("env", "A=b", "C=d=e", "smi", "-L", "x=y"), {"A": "b", "C": "d=e"}, ("smi", "-L", "x=y")),
        (("env", "A=b", "A=", "smi"), {"A": ""}, ("smi",)),
        *(
            (argv, {}, argv)
            for argv in (
                ("smi", "A=b", "-L"),
                ("env",),
                ("env", "A=b"),
                ("env", "smi"),
                ("env", "-i", "A=b", "smi"),  # these mean more
                ("env", "--chdir=/", "smi"),
                ("env", "A=b", "-u", "C", "smi"),
                ("env", "PATH=/elsewhere", "smi"),
                ("env", "=b", "smi"),
            )
        ),
    ],
    ids=" ".join,
)
def test_variables_in_front_are_told_from_the_program(
    argv: tuple[str, ...], variables: dict[str, str], words: tuple[str, ...]
) -> None:
    assert spawn.behind_env(argv) == (variables, words)


def test_a_program_behind_variables_is_started_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where there is none of that name, env says so itself, as before."""
    monkeypatch.setattr(Host, "which", lambda _self, name: f"/bin/{name}" if name == "sh" else None)
    shown = Host().ask(("env", "A=b c", "LANG=x", "sh", "-c", 'echo "$A $LANG $LC_ALL"'))
    assert shown == Answer(0, "b c x C\n")
    assert Host().ask(("env", "A=b", "nothing-of-that-name")) == Answer(127, "", "env: no such program")
    lost = tmp_path / "lost"  # there, but not what it is run by
    lost.write_text(f"#!{tmp_path}/nothing\n")
    lost.chmod(0o755)
    monkeypatch.setattr(Host, "which", lambda _self, name: str(lost) if name == "smi" else f"/bin/{name}")
    assert Host().ask(("env", "A=b", "smi")) == Answer(127, "", "smi: no such program")
    with pytest.raises(Hung, match=r"^env A=b sh -c .* did not end within 0.2 seconds"):
        Host().ask(("env", "A=b", "sh", "-c", "sleep 9"), 0.2)
