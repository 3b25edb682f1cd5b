# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The door to the machine: what counts as absent, programs bounded and in a fixed environment, one write a value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import run, set_value, write


def test_only_what_is_not_there_reads_as_absent(tmp_path: Path) -> None:
    host = Host()
    there = tmp_path / "there"
    there.write_bytes(b"a\xffb\n")
    assert host.read(str(there)) == "a\udcffb\n"
    (tmp_path / "lines").write_bytes(b"a\r\nb\rc\n\r")  # as others' editors end them
    assert host.read(str(tmp_path / "lines")) == "a\nb\nc\n\n"
    (tmp_path / "long").write_bytes("é".encode() * 200_000)
    assert host.read(str(tmp_path / "long")) == "é" * 200_000
    for absent in (tmp_path / "no", there / "below"):
        assert (host.read(str(absent)), host.file(str(absent)), host.names(str(absent))) == (None, None, ())
        assert host.exists(str(absent)) is False
    with pytest.raises(Unreadable) as fault:
        host.read(str(tmp_path))
    assert str(tmp_path) in fault.value.message
    assert fault.value.denied is False


@pytest.mark.parametrize("name", ["/etc/a\0b", "/etc/\ud800"])
def test_a_name_that_no_file_can_have_reads_as_absent(name: str) -> None:
    host = Host()
    assert (host.read(name), host.file(name), host.names(name), host.link(name)) == (None, None, (), None)
    assert host.exists(name) is False


def test_a_text_that_no_file_can_hold_is_a_failed_step(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="cannot write it: it has half a character") as fault:
        Host().apply(write(str(tmp_path / "file"), "\ud800", "write it"))
    assert fault.value.retryable is False
    assert list(tmp_path.iterdir()) == []


def test_an_io_error_of_the_kernel_is_no_absence() -> None:
    with pytest.raises(Unreadable):
        Host().read("/proc/self/mem")


def test_a_named_pipe_in_a_file_s_place_holds_nobody(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(Unreadable, match="named pipe"):
        Host().read(str(pipe))
    assert Host().read("/dev/null") == ""


def test_a_link_in_a_file_s_place_is_seen_as_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/etc/passwd")
    seen = Host().file(str(link))
    assert seen is not None
    assert (seen.regular, seen.text) == (False, "")
    assert Host().link(str(link)) == "/etc/passwd"
    assert Host().link("/etc/passwd") is None


def test_programs_run_in_the_c_locale_on_a_fixed_path_without_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("SECRET_TOKEN", "leaked")
    said = Host().ask(("env",)).out.splitlines()
    assert "LC_ALL=C" in said
    assert "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" in said
    assert not [line for line in said if "SECRET_TOKEN" in line]
    assert Host().ask(("cat",)).out == ""
    assert Host().ask(("cat",), stdin="given").out == "given"


def test_a_missing_program_answers_as_a_shell_would() -> None:
    assert Host().ask(("no-such-program-of-ours",)).rc == 127


def test_a_program_that_hangs_is_ended_with_its_children() -> None:
    with pytest.raises(StepFailed) as fault:
        Host().ask(("sh", "-c", "sleep 61.5 & wait"), timeout=0.3)
    assert "did not end within 0.3 seconds" in fault.value.message
    running = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _says(path, b"61.5")]
    assert running == []


def _says(path: Path, word: bytes) -> bool:
    try:
        return word in path.read_bytes()
    except OSError:
        return False


def test_a_program_of_a_step_is_bounded_to_20_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def spawn(_host: Host, argv: tuple[str, ...], timeout: float, _stdin: str) -> Answer:
        given.append((argv, timeout))
        return Answer(0, "")

    monkeypatch.setattr(Host, "_spawn", spawn)
    Host().apply(run(("apt-get", "update"), "update"))
    Host().apply(run(("quick",), "be quick", timeout=5))
    assert given == [(("apt-get", "update"), 20 * 60), (("quick",), 5)]


def test_a_failed_step_names_its_command_and_what_it_said() -> None:
    with pytest.raises(StepFailed) as fault:
        Host().apply(run(("sh", "-c", "echo no space >&2; exit 3"), "build it"))
    assert fault.value.message == "cannot build it: sh -c echo no space >&2; exit 3 exited with 3: no space"


def test_a_value_the_kernel_does_not_take_says_so(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as fault:
        Host().apply(set_value(str(tmp_path / "none"), "1", "set it to 1"))
    assert fault.value.message == "cannot set it to 1: No such file or directory"


def test_a_question_s_files_are_private_and_gone_afterwards() -> None:
    script = 'stat -c %a "${0%/*}"; cat "$0"; echo "$0" >&2'
    ask = Ask(("sh", "-c", script, "{candidate}"), (("candidate", "hello"),))
    said = Host().answer(ask)
    assert said.out == "700\nhello"
    assert not os.path.exists(said.err.strip())


def test_a_directory_in_a_files_place_is_named_with_the_next_move(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"Is a directory \(move the directory away\)"):
        Host().read(str(tmp_path))
