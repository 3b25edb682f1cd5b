# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass a host: the lock that each module holds around its look, plan and apply."""

from __future__ import annotations

import errno
import fcntl
import os

from . import rootfs
from .errors import StepFailed
from .state import STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .host import Host

PATH = STATE + "/lock"  # 0600 in root's directory: no other account can hold it
WAIT = 120.0  # seconds


class Held(StepFailed):
    """Another pass has the lock."""


class only_pass:  # noqa: N801 - a function to those who use it; contextlib would cost each pass its import
    """Hold the host's lock as `what` ("host_section"); raises Held naming the holder after `wait` seconds."""

    def __init__(self, host: Host, what: str, wait: float = WAIT) -> None:
        self._host, self._what, self._wait = host, what, wait
        self._lock = -1

    def __enter__(self) -> None:
        try:
            self._lock = rootfs.open_lock(PATH)
        except OSError as fault:
            from .host import advice

            raise StepFailed(f"cannot open {PATH}: {fault.strerror}{advice(fault)}") from None
        try:
            _acquire(self._host, self._lock, self._wait)
            _sign(self._lock, self._what)
        except BaseException:
            os.close(self._lock)
            raise

    def __exit__(self, *_fault: object) -> None:
        os.close(self._lock)


def _sign(lock: int, what: str) -> None:
    """Leave a name for those who wait; a full disk must not stop a pass that writes nothing."""
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{what}, process {os.getpid()}\n".encode(), 0)
    except OSError:
        pass


def _acquire(host: Host, lock: int, wait: float) -> None:
    end = host.clock() + wait
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as fault:
            if fault.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        if host.clock() >= end:
            holder = os.pread(lock, 200, 0).decode("utf-8", "replace").strip() or "an unnamed process"
            raise Held(
                f"another pass holds {PATH} ({holder}), still after {wait:g} seconds: run again when it has ended"
            )
        host.sleep(0.2)
