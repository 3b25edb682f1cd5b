# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A QEMU as a process: started in a room of its own, found again by pid and start time, ended for certain."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from . import qmp
from .errors import LabError

KILL_LIMIT = 60.0  # seconds that a busy machine may take to give back some gigabytes of memory


class Process(NamedTuple):
    """A process that cannot be confused with a later one of the same pid. start: clock ticks after this boot."""

    pid: int
    start: int


def find(pid: int) -> Process | None:
    """The process with this pid, or None when there is none or it has ended (a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else Process(pid, int(fields[19]))


def alive(process: Process) -> bool:
    return find(process.pid) == process


def spawn(argv: tuple[str, ...], log: Path, tied: bool) -> Process:
    """Starts a QEMU in a session of its own. tied: it dies with the process that called us, however that ends."""
    prefix = ("setpriv", "--pdeathsig", "KILL", "--") if tied else ()
    with log.open("ab") as stream:
        child = subprocess.Popen(
            (*prefix, *argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    process = find(child.pid)
    if process is None:
        child.wait()
        raise LabError(f"QEMU did not start: {log.read_text(errors='replace').strip()}")
    # The child is waited for by `end`; the object's own warning about a running child would say nothing.
    child.returncode = 0
    return process


def end(process: Process, control: Path, patience: float = 5) -> None:
    """Ends a QEMU: politely, then by SIGKILL through a file descriptor that names exactly this process."""
    if not alive(process):
        _reap(process.pid)
        return
    descriptor = os.pidfd_open(process.pid)
    try:
        if not alive(process):
            return
        try:
            with qmp.Qmp(control, timeout=patience) as connection:
                connection.command("quit")
        except (OSError, qmp.QmpError):
            pass  # not listening, or gone while it answered: the signal below settles it
        if not _gone(process, patience):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            if not _gone(process, KILL_LIMIT):
                raise LabError(f"the lab's QEMU (pid {process.pid}) survived SIGKILL: look at its state in /proc")
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def _gone(process: Process, patience: float) -> bool:
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        _reap(process.pid)
        if not alive(process):
            return True
        time.sleep(0.05)
    return False


def _reap(pid: int) -> None:
    """Takes the exit status when the process is our child."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def remember(room: Path, process: Process, facts: dict[str, str]) -> None:
    text = json.dumps({"pid": process.pid, "start": process.start, **facts}, indent=1)
    temporary = room / "machine.json.new"
    temporary.write_text(text)
    temporary.rename(room / "machine.json")


def recall(room: Path) -> tuple[Process, dict[str, str]] | None:
    """The process and the facts that were remembered in a room; None when there is nothing."""
    try:
        facts = json.loads((room / "machine.json").read_text())
    except FileNotFoundError:
        return None
    return Process(int(facts.pop("pid")), int(facts.pop("start"))), facts
