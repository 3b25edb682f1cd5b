# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are started together and leave nothing behind, whatever they have started themselves.

Each gets a session of its own and a mark in its environment. By the mark are found those that left the session:
Ansible's workers, QEMU, the connections that ssh keeps open. By the session those that cleared the environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

MARK = "BCD_TESTS_RUN"
PATIENCE = 10.0  # seconds between the request to end and SIGKILL
LAST_WAIT = 30.0  # seconds for the kernel to take them away after that
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Started:
    """Everything that `start` has started; all of it is ended when the block is left."""

    def __init__(self) -> None:
        # One run inside another is a part of it.
        self.mark = f"{os.environ.get(MARK, '')}{os.getpid()}.{time.monotonic_ns()}/"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.sessions: set[int] = set()

    def __enter__(self) -> Started:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self, argv: tuple[str, ...], directory: Path, output: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a program; what it prints goes where ours goes, or into a file that is made anew."""
        environment = {**os.environ, MARK: self.mark}
        null = subprocess.DEVNULL
        if output is None:
            process = subprocess.Popen(argv, cwd=directory, env=environment, stdin=null, start_new_session=True)
        else:
            output.parent.mkdir(parents=True, exist_ok=True)
            with output.open("wb") as stream:
                process = subprocess.Popen(
                    argv,
                    cwd=directory,
                    env=environment,
                    stdin=null,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        self.processes.append(process)
        self.sessions.add(process.pid)
        return process

    def alive(self) -> list[int]:
        """The ids of all that run."""
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._is_ours(entry)]

    def _is_ours(self, entry: Path) -> bool:
        try:
            state, _parent, _group, session = (
                (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:4]
            )
            if state == "Z":
                return False
            return int(session) in self.sessions or self._is_marked((entry / "environ").read_bytes())
        except OSError:  # it has ended, or is another account's
            return False

    def _is_marked(self, environment: bytes) -> bool:
        return any(word.startswith(f"{MARK}={self.mark}".encode()) for word in environment.split(b"\0"))

    def end(self) -> None:
        """Ask all that run to end, kill those that did not in time, and return when none is left."""
        for number, limit in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, LAST_WAIT)):
            until = time.monotonic() + limit
            told: set[int] = set()
            while (alive := self.alive()) and time.monotonic() < until:
                for pid in set(alive) - told:  # one may start another while it is ending
                    send(pid, number)
                told.update(alive)
                time.sleep(0.05)
        for process in self.processes:
            process.poll()


def send(pid: int, number: signal.Signals) -> None:
    """A signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_with_the_block() -> None:
    """Let a signal that asks this program to end raise SystemExit, so that blocks are left as they should be."""

    def leave(number: int, _frame: object) -> None:
        for each in ENDING:  # once: a second one must not interrupt the cleaning up
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for each in ENDING:
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, leave)
