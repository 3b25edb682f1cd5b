# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line at the bottom of the terminal that is rewritten in place, beside all else that Ansible prints there.

Ansible prints through its one Display, from several threads, and forks a process for each host's task. So:

* whatever Display prints takes the line away first; a thread of our own draws it again, and never while Display prints,
  asks a question, or has left its own line unfinished;
* a process must not fork while another of its threads has a lock, since nobody gives it back in the child. The line is
  drawn with Display's own lock, without waiting for it, which Ansible has while it forks; our own lock is never taken
  in a child;
* the line is not drawn while the terminal is another's: a job in the background, a program that asks for a password.
"""

from __future__ import annotations

import atexit
import os
import termios
import threading
from collections.abc import Callable, Mapping
from typing import Any, TextIO

CLEAR = "\r\x1b[K"  # to the first column, and nothing right of it (ECMA-48: CR, EL)
EVERY = 0.5  # seconds between two drawings
LEAST = 20  # columns below which no line is drawn
LOGGED = 200  # columns of a line in a log
UNKNOWN = 80  # columns of a terminal that says 0
FAULTS = (OSError, ValueError, AttributeError, RuntimeError, termios.error)  # of a terminal, a stream, a Display
ASKING = ("prompt", "prompt_until")  # how Display asks a person


class PlainLines:
    """The same where there is no terminal, for a log: a line of its own every so many seconds."""

    def __init__(self, display: Any, say: Callable[[int], str], every: float) -> None:
        self._display, self._say, self._every = display, say, every
        self._stop = threading.Event()

    def open(self) -> None:
        """Begin to print."""
        threading.Thread(target=self._run, name="pass_report", daemon=True).start()

    def close(self) -> None:
        """Print no more."""
        self._stop.set()

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._every):
                text = self._say(LOGGED)
                if text:
                    self._display.display(text)
        except FAULTS:
            self._stop.set()


class TerminalLine:
    """The line on a stream that is a terminal. `say(columns)` gives its text, in a thread of its own; "" is no line."""

    def __init__(self, display: Any, stream: TextIO, say: Callable[[int], str], every: float = EVERY) -> None:
        self._display, self._stream, self._say, self._every = display, stream, say, every
        self._file = stream.fileno()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._busy = 0  # calls of Display that print or ask
        self._drawn = False
        self._unfinished = False  # whether Display has left its own line without an end
        self._stop = threading.Event()
        self._hooked: dict[str, tuple[Any, Any]] = {}  # by the name of Display's method, ours and what it was

    def open(self) -> None:
        """Begin to draw."""
        for name in ("display", *ASKING):
            was = getattr(self._display, name, None)
            if was is not None:
                ours = self._between(was, name == "display")
                self._hooked[name] = (ours, was)
                setattr(self._display, name, ours)
        atexit.register(self.close)
        threading.Thread(target=self._run, name="pass_report", daemon=True).start()

    def close(self) -> None:
        """Take the line away for good. Nothing of ours stays with Display."""
        if os.getpid() != self._process:
            return
        self._stop.set()
        with self._lock:
            self._clear()
        for name, (ours, _was) in self._hooked.items():
            if (
                vars(self._display).get(name) is ours
            ):  # another may have hooked itself in over ours, which then only calls
                delattr(self._display, name)
        self._hooked = {}
        atexit.unregister(self.close)

    def _between(self, was: Any, prints: bool) -> Any:
        """A method of Display, with the line out of its way."""

        def ours(*given: Any, **named: Any) -> Any:
            if os.getpid() != self._process:
                return was(*given, **named)
            with self._lock:
                self._busy += 1
                self._clear()
            try:
                return was(*given, **named)
            finally:
                with self._lock:
                    self._busy -= 1
                    if prints and not _is_for_the_log(given, named):
                        self._unfinished = not _ends_its_line(given, named)

        return ours

    def _run(self) -> None:
        """The thread. What goes wrong in it, with a terminal that is gone say, costs the line and nothing else."""
        try:
            while not self._stop.wait(self._every):
                self.tick()
        except FAULTS:
            self._stop.set()

    def tick(self) -> None:
        """Draw the line as it is now, where it may be drawn."""
        text = ""
        columns = os.get_terminal_size(self._file).columns or UNKNOWN
        if columns >= LEAST and self._is_ours():
            text = self._say(columns - 1)  # the last column stays free: a terminal may wrap a line that fills it
        with self._lock:
            if self._busy or self._unfinished or self._stop.is_set() or not (text or self._drawn):
                return
            if not self._display._lock.acquire(blocking=False):
                return
            try:
                self._stream.flush()
                self._write(CLEAR + text)
                self._drawn = bool(text)
            finally:
                self._display._lock.release()

    def _is_ours(self) -> bool:
        """Whether this process is the terminal's, and nobody reads in secret there."""
        try:
            mine = os.tcgetpgrp(self._file) == os.getpgrp()
        except OSError:  # not the terminal that controls the process: then no job control either
            mine = True
        return mine and bool(termios.tcgetattr(self._file)[3] & termios.ECHO)

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = False
            self._write(CLEAR)

    def _write(self, text: str) -> None:
        try:
            os.write(self._file, text.encode(self._stream.encoding or "utf-8", errors="replace"))
        except OSError:  # the terminal is gone: Ansible says so itself, if it matters to it
            self._stop.set()


def _ends_its_line(given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether a call of `Display.display(msg, color, stderr, screen_only, log_only, newline)` ended its line."""
    newline = named.get("newline", given[5] if len(given) > 5 else True)
    text = named.get("msg", given[0] if given else "")
    return bool(newline) or str(text).endswith("\n")


def _is_for_the_log(given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    return bool(named.get("log_only", given[4] if len(given) > 4 else False))


def is_wanted(wish: str, stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether a line is to be kept on a stream, standard output: `wish` is "auto" or "always".

    Colours that are forced say nothing of who looks. ansible-runner, by which AWX runs its jobs, gives Ansible a
    terminal of its own and sets AWX_ISOLATED_DATA_DIR; systems for continuous integration set CI.
    """
    if not stream.isatty():
        return False
    if wish == "always":
        return True
    if environment.get("AWX_ISOLATED_DATA_DIR") or environment.get("TERM", "dumb") == "dumb":
        return False
    return environment.get("CI", "").lower() in ("", "0", "false", "no")
