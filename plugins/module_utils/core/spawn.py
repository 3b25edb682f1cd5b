# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program run to its end, in a process group of its own and in bounded time.

subprocess does the same; but a pass that asks a dozen programs would spend as much on its import as on all of them.
"""

# AnsibleModule's run_command knows neither a process group nor a timeout, and is not there in the program.
# pylint: disable=ansible-bad-function

from __future__ import annotations

import os
import select
import time

from .errors import Hung
from .seen import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SIGTERM, SIGKILL = 15, 9  # on every Linux; the module signal costs as much as a start of Python
IGNORED = (13, 25)  # SIGPIPE and SIGXFSZ, by Python alone; on Alpha, MIPS and PA-RISC the second has another number
CHUNK = 1 << 16
GRACE = 10.0  # seconds that a program has to end when it is asked to
# Seconds between looks at a program that has closed its outputs, and not ended: most often it is just about to.
NAPS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.02)
# A package manager killed half-way leaves a broken database: it is asked to stop, and left alone.
PATIENT = frozenset(("apt-get", "apt", "dpkg", "dnf", "yum", "rpm", "zypper", "rpm-ostree", "transactional-update"))


def behind_env(argv: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables of an `env NAME=value ...` in front, and the words behind it: what env would set, and become.

    No variables, and all of the words, where there is none in front, or where it would do more than that.
    """
    at = next((at for at, word in enumerate(argv) if at and "=" not in word), 0)
    if argv[0] != "env" or at < 2 or argv[at].startswith("-"):
        return {}, argv
    variables = dict(word.split("=", 1) for word in argv[1:at])
    return ({}, argv) if {"", "PATH"} & {*variables} or argv[1].startswith("-") else (variables, argv[at:])


def spawned(
    path: str,
    argv: tuple[str, ...],
    timeout: float,
    stdin: str,
    environment: Mapping[str, str],
    asked: tuple[str, ...] = (),
) -> Answer:
    """What the program at `path` says to these words and this input; `asked`: as faults name them, if it is otherwise.

    Raises FileNotFoundError where there is none, OSError where it cannot be started, Hung when its time is over: it and
    what it has started are ended then.
    """
    child = _Child(path, argv, stdin, environment)
    try:
        if not child.ends_in(timeout):
            for sign in _signs(argv):
                if child.ends_by(sign):
                    break
            raise Hung(f"{' '.join(asked or argv)} did not end within {timeout:g} seconds: see what it waits for")
    finally:
        child.close()
    return Answer(child.status, child.said(child.out), child.said(child.err))


def _signs(argv: tuple[str, ...]) -> tuple[int, ...]:
    """What a program that hangs is told, one after the other."""
    from .step import program_of

    return (SIGTERM,) if program_of(argv)[0] in PATIENT else (SIGTERM, SIGKILL)


class _Child:
    """A process with pipes: `status` is its exit status, or the signal that ended it, negative, once it has ended."""

    def __init__(self, path: str, argv: tuple[str, ...], stdin: str, environment: Mapping[str, str]) -> None:
        self.status = 0
        self._ended = False
        self._given = stdin.encode()
        self._heard: dict[int, list[bytes]] = {}
        self._open: set[int] = set()
        theirs: list[int] = []
        try:
            null = _nothing(theirs)  # first: from here on no descriptor is one of the three that are replaced
            self.out, out = self._reader(theirs)
            self.err, err = self._reader(theirs)
            self._in, given = self._writer(theirs) if stdin else (-1, null)
            self._pid = _started(path, argv, environment, (given, out, err))
        except BaseException:
            self.close()
            raise
        finally:
            for end in theirs:
                os.close(end)

    def _reader(self, theirs: list[int]) -> tuple[int, int]:
        end, other = os.pipe()
        self._open.add(end)
        theirs.append(other)
        self._heard[end] = []
        return end, other

    def _writer(self, theirs: list[int]) -> tuple[int, int]:
        other, end = os.pipe()
        self._open.add(end)
        theirs.append(other)
        os.set_blocking(end, False)
        return end, other

    def ends_in(self, seconds: float) -> bool:
        """Whether it ends, and all that holds its outputs, within this time."""
        end = time.monotonic() + seconds
        waiting = select.poll()
        for pipe in self._open:
            waiting.register(pipe, select.POLLOUT if pipe == self._in else select.POLLIN)
        while self._open:
            left = end - time.monotonic()
            if left <= 0:
                return False
            for pipe, _events in waiting.poll(left * 1000 + 1):
                if self._is_done(pipe):
                    waiting.unregister(pipe)
                    self._shut(pipe)
        naps = [*NAPS]
        while not self._has_ended():
            if time.monotonic() >= end:
                return False
            time.sleep(naps.pop(0) if len(naps) > 1 else naps[0])
        return True

    def ends_by(self, sign: int) -> bool:
        """Whether its process group ends when it gets this signal."""
        try:
            os.killpg(self._pid, sign)
        except ProcessLookupError:
            return False
        return self.ends_in(GRACE)

    def _is_done(self, pipe: int) -> bool:
        """Read or write what goes; whether nothing more will."""
        if pipe != self._in:
            data = os.read(pipe, CHUNK)
            self._heard[pipe].append(data)
            return not data
        try:
            self._given = self._given[os.write(pipe, self._given[:CHUNK]) :]
        except BrokenPipeError:  # it does not want the rest
            return True
        except BlockingIOError:
            return False
        return not self._given

    def _has_ended(self) -> bool:
        if not self._ended:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # nobody is told of children here
                pid, status = self._pid, 0
            self._ended = pid == self._pid
            self.status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self._ended

    def said(self, pipe: int) -> str:
        """What came out of it."""
        return b"".join(self._heard[pipe]).decode("utf-8", "replace")

    def _shut(self, pipe: int) -> None:
        self._open.discard(pipe)
        os.close(pipe)

    def close(self) -> None:
        """Let go of what is left of it."""
        for pipe in [*self._open]:
            self._shut(pipe)


def _started(path: str, argv: tuple[str, ...], environment: Mapping[str, str], ends: tuple[int, int, int]) -> int:
    """Start it in / with these as its first three descriptors, and no other; the process's id."""
    actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, end, at) for at, end in enumerate(ends)]
    actions += [(os.POSIX_SPAWN_CLOSE, other) for other in _inherited()]
    try:
        here = os.open(".", os.O_PATH | os.O_CLOEXEC)
    except OSError:  # a directory that cannot be had any more: then this process stays in / as well
        here = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        os.chdir("/")
        try:
            return os.posix_spawn(path, argv, environment, file_actions=actions, setsid=True, setsigdef=IGNORED)
        except NotImplementedError:  # a Python made for a C library that has no sessions for this: then a group alone
            return os.posix_spawn(path, argv, environment, file_actions=actions, setpgroup=0, setsigdef=IGNORED)
    finally:
        try:
            os.fchdir(here)
        except PermissionError:  # where this account may not be, it does not go back to
            pass
        os.close(here)


def _nothing(theirs: list[int]) -> int:
    """A descriptor that reads as empty, above the three of every program, which may be closed here."""
    while True:
        null = os.open(os.devnull, os.O_RDONLY)
        theirs.append(null)
        if null > 2:
            return null


def _inherited() -> list[int]:
    """Descriptors that whoever started this process has left open to what it starts."""
    try:
        known = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # no /proc
        known = [*range(256)]
    return [descriptor for descriptor in known if descriptor > 2 and _is_inherited(descriptor)]


def _is_inherited(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # it is not open any more
        return False
