# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program on a real pseudo-terminal, which controls it as a shell's would, and what a person then sees there."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType

# Its own session, with the terminal on standard input as the one that controls it; then the program. Whoever runs the
# tests in the background ignores SIGINT, and a program is born with that; a person's shell has it as it is by default.
LEAD = (
    "import fcntl, os, signal, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    " signal.signal(signal.SIGINT, signal.SIG_DFL); signal.signal(signal.SIGQUIT, signal.SIG_DFL);"
    " os.execvp(sys.argv[1], sys.argv[1:])"
)
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Terminal:
    """A program and its terminal, as a context; what is left of the program then is killed."""

    def __init__(
        self, argv: list[str], environment: dict[str, str], cwd: str, columns: int = 100, rows: int = 50
    ) -> None:
        self.said = ""
        self._master, slave = os.openpty()
        self.resize(columns, rows)
        self._child = subprocess.Popen(
            [sys.executable, "-c", LEAD, *argv], stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=cwd
        )
        os.close(slave)
        self.leader = self._child.pid  # of the session, and of its first group

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        os.close(self._master)

    def resize(self, columns: int, rows: int = 50) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def until(self, is_there: Callable[[str], object], seconds: float = 60) -> str:
        """Read until something is there, of all that was said, or the program has ended; AssertionError where not."""
        end = time.monotonic() + seconds
        while not is_there(self.said):
            if not self._read(end):
                raise AssertionError(f"it did not come within {seconds} s:\n{self.said[-3000:]}")
        return self.said

    def end(self, seconds: float = 120) -> int:
        """Read to the end; the exit status."""
        end = time.monotonic() + seconds
        while self._read(end):
            pass
        return self._child.wait(max(1.0, end - time.monotonic()))

    def _read(self, end: float) -> bool:
        """Whether something was said before the time; False once the program has left the terminal."""
        ready, _unused, _unused2 = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: nobody has the other side open any more
            return False
        self.said += data.decode(errors="replace")
        return bool(data)


def screen(said: str) -> list[str]:
    """The lines that are to be seen, without bound to above, after all of it: CR, LF, EL and colours are understood.

    ValueError for any other sequence, and for another control character.
    """
    lines, column, place = [""], 0, 0
    while place < len(said):
        character = said[place]
        sequence = SEQUENCE.match(said, place)
        if sequence:
            if sequence.groups() == ("", "K"):
                lines[-1] = lines[-1][:column]
            elif sequence.group(2) != "m":
                raise ValueError(f"not understood: {sequence.group()!r}")
            place = sequence.end()
            continue
        if character == "\r":
            column = 0
        elif character == "\n":
            lines.append("")
        elif character.isprintable():
            lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1 :]
            column += 1
        else:
            raise ValueError(f"not understood: {character!r}")
        place += 1
    return lines
