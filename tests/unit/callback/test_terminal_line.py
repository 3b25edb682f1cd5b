# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line at the bottom of the terminal, on a real pseudo-terminal beside a Display that prints there too."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import time
from collections.abc import Iterator
from typing import TextIO

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.terminal_line import (
    CLEAR,
    PlainLines,
    TerminalLine,
    is_wanted,
)

NEVER = 1e6  # seconds: the tests draw by themselves


class Printer:
    """Prints as Ansible's Display does, with the names of its methods, arguments and lock."""

    def __init__(self, stream: TextIO) -> None:
        self._lock = threading.RLock()
        self.stream = stream
        self.log: list[str] = []

    def display(
        self,
        msg: str,
        color: str | None = None,
        stderr: bool = False,
        screen_only: bool = False,
        log_only: bool = False,
        newline: bool = True,
    ) -> None:
        """Print a line."""
        if log_only:
            self.log.append(msg)
            return
        with self._lock:
            self.stream.write(msg + ("\n" if newline else ""))

    def prompt(self, msg: str) -> str:
        """Ask a person."""
        raise KeyboardInterrupt


class Pty:
    """Both sides of a terminal."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self.stream = os.fdopen(self.slave, "w", encoding="utf-8", closefd=False)
        modes = termios.tcgetattr(self.slave)
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)

    def shown(self) -> str:
        """What was written since the last look."""
        self.stream.flush()
        found = ""
        while select.select([self.master], [], [], 0)[0]:
            found += os.read(self.master, 65536).decode()
        return found

    def echo(self, on: bool) -> None:
        """Turn the echo of keys on or off, as who reads a password does."""
        modes = termios.tcgetattr(self.slave)
        modes[3] = modes[3] | termios.ECHO if on else modes[3] & ~termios.ECHO
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)


@pytest.fixture
def pty() -> Iterator[Pty]:
    both = Pty()
    yield both
    with contextlib.suppress(OSError):
        both.stream.close()
    os.close(both.slave)
    os.close(both.master)


def opened(printer: Printer, text: str = "12 of 20 hosts") -> TerminalLine:
    line = TerminalLine(printer, printer.stream, lambda columns: text[:columns], every=NEVER)
    line.open()
    return line


def test_what_is_printed_takes_the_line_away_first(pty: Pty) -> None:
    printer = Printer(pty.stream)
    line = opened(printer)
    line.tick()
    assert pty.shown() == f"{CLEAR}12 of 20 hosts"
    printer.display("ok: [a]")
    assert pty.shown() == f"{CLEAR}ok: [a]\n"
    printer.display("ok: [b]")
    assert pty.shown() == "ok: [b]\n"
    line.tick()
    assert pty.shown() == f"{CLEAR}12 of 20 hosts"
    line.close()
    assert pty.shown() == CLEAR


def test_nothing_of_it_stays_with_the_display(pty: Pty) -> None:
    printer = Printer(pty.stream)
    line = opened(printer)
    assert vars(printer).keys() >= {"display", "prompt"}
    line.close()
    assert not vars(printer).keys() & {"display", "prompt"}
    line.tick()
    line.close()
    assert pty.shown() == ""


def test_a_line_that_has_no_end_yet_is_not_drawn_over(pty: Pty) -> None:
    printer = Printer(pty.stream)
    line = opened(printer)
    printer.display("Go on? ", newline=False)
    printer.display("to the log", None, False, False, True)
    line.tick()
    assert pty.shown() == "Go on? "
    printer.display("yes\n", None, False, False, False, False)
    line.tick()
    assert pty.shown() == f"yes\n{CLEAR}12 of 20 hosts"
    assert printer.log == ["to the log"]
    line.close()


def test_while_a_person_is_asked_nothing_is_drawn(pty: Pty) -> None:
    during: list[str] = []

    class Asking(Printer):
        def prompt(self, msg: str) -> str:
            line.tick()
            during.append(pty.shown())
            raise KeyboardInterrupt

    printer = Asking(pty.stream)
    line = opened(printer)
    line.tick()
    pty.shown()
    with pytest.raises(KeyboardInterrupt):
        printer.prompt("Go on?")
    assert during == [CLEAR]
    line.tick()
    assert pty.shown() == f"{CLEAR}12 of 20 hosts"
    line.close()


def test_while_the_display_has_its_lock_nobody_waits_for_it(pty: Pty) -> None:
    printer = Printer(pty.stream)
    line = opened(printer)
    drawn = threading.Thread(target=line.tick)
    with printer._lock:  # as Ansible has it while it forks
        drawn.start()
        drawn.join(10)
        assert not drawn.is_alive()
        assert pty.shown() == ""
    line.close()


def test_a_child_leaves_the_line_and_its_lock_alone(pty: Pty) -> None:
    printer = Printer(pty.stream)
    line = opened(printer)
    line.tick()
    pty.shown()
    with line._lock:  # another thread has it while this one forks: nobody gives it back in the child
        child = os.fork()
        if not child:
            try:
                printer.display("from a child")
                line.close()
                pty.stream.flush()
            finally:
                os._exit(0)
    end = time.monotonic() + 20
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert time.monotonic() < end, "the child waits for ever"
        time.sleep(0.01)
    assert pty.shown() == "from a child\n"
    line.close()


def test_who_reads_a_password_is_not_disturbed(pty: Pty) -> None:
    line = opened(Printer(pty.stream))
    line.tick()
    pty.shown()
    pty.echo(False)
    line.tick()
    assert pty.shown() == CLEAR
    line.tick()
    assert pty.shown() == ""
    pty.echo(True)
    line.tick()
    assert pty.shown() == f"{CLEAR}12 of 20 hosts"
    line.close()


@pytest.mark.parametrize(("columns", "shown"), [(100, 99), (20, 19), (19, 0), (0, 79)])
def test_the_last_column_stays_free(pty: Pty, columns: int, shown: int) -> None:
    fcntl.ioctl(pty.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    line = opened(Printer(pty.stream), "x" * 500)
    line.tick()
    assert pty.shown() == (CLEAR + "x" * shown if shown else "")
    line.close()


def test_a_terminal_that_goes_costs_the_line_alone(pty: Pty, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(handle: int, data: bytes) -> int:
        raise OSError(5, "Input/output error")

    printer = Printer(pty.stream)
    line = opened(printer)
    line.tick()
    monkeypatch.setattr(os, "write", gone)
    printer.display("ok: [a]")
    monkeypatch.undo()
    assert line._stop.is_set()


def test_the_thread_draws_by_itself_and_ends_with_the_line(pty: Pty) -> None:
    line = TerminalLine(Printer(pty.stream), pty.stream, lambda columns: "here", every=0.01)
    line.open()
    found, end = "", time.monotonic() + 20
    while "here" not in found and time.monotonic() < end:
        found += pty.shown()
    line.close()
    assert f"{CLEAR}here" in found
    pty.shown()
    time.sleep(0.05)
    assert pty.shown() == ""


@pytest.mark.parametrize(
    ("wish", "environment", "wanted"),
    [
        ("auto", {"TERM": "xterm-256color"}, True),
        ("auto", {"TERM": "xterm", "ANSIBLE_FORCE_COLOR": "1"}, True),
        ("auto", {"TERM": "xterm", "CI": "false"}, True),
        ("auto", {"TERM": "xterm", "CI": "true"}, False),
        ("auto", {"TERM": "xterm", "CI": "1"}, False),
        ("auto", {"TERM": "xterm", "AWX_ISOLATED_DATA_DIR": "/runner/artifacts/1"}, False),
        ("auto", {"TERM": "dumb"}, False),
        ("auto", {}, False),
        ("always", {"CI": "true", "AWX_ISOLATED_DATA_DIR": "/runner/artifacts/1"}, True),
    ],
)
def test_where_a_line_is_wanted_on_a_terminal(pty: Pty, wish: str, environment: dict[str, str], wanted: bool) -> None:
    assert is_wanted(wish, pty.stream, environment) is wanted


def test_without_a_terminal_none_is_wanted() -> None:
    with open(os.devnull, "w", encoding="utf-8") as stream:
        assert [is_wanted(wish, stream, {"TERM": "xterm"}) for wish in ("auto", "always")] == [False, False]


def test_a_log_gets_a_line_now_and_then_while_there_is_something_to_say() -> None:
    texts = ["", "1 of 2 hosts", "", "2 of 2 hosts"]
    with open(os.devnull, "w", encoding="utf-8") as stream:
        printer = Printer(stream)
        printed: list[str] = []
        printer.display = printed.append  # type: ignore[assignment]  # as another plugin may put itself there
        lines = PlainLines(printer, lambda columns: texts.pop(0) if texts else "", 0.01)
        lines.open()
        end = time.monotonic() + 20
        while texts and time.monotonic() < end:
            time.sleep(0.01)
        lines.close()
    assert printed == ["1 of 2 hosts", "2 of 2 hosts"]
