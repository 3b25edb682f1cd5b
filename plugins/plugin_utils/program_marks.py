# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of a run are asked for the program: what its workers know together, by files in a folder of it.

To ask a host that has no program costs as much as a module. So the first hosts that are asked decide: where none of
THOSE_THAT_DECIDE has it, the rest of the run asks no one. One that has it, and every host is asked. Meanwhile the
others wait, for a moment only: a host without the program says so at once, and one that has it may be at work.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress

THOSE_THAT_DECIDE = 3
LONGEST_WAIT = 0.5  # seconds
BETWEEN_LOOKS = 0.01  # seconds
ABSENT, FIRST, PRESENT = "absent-", "first-", "present"


class Marks:
    """The marks in a folder, which is made when it is needed. OSError where that cannot be."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def should_ask(self, host: str, longest_wait: float = LONGEST_WAIT) -> bool:
        """Whether the host is to be asked for the program."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        if self.is_absent(host):
            return False
        found = self._known()
        if found is not None or self._is_first():
            return found is not False
        end = time.monotonic() + longest_wait
        while found is None and time.monotonic() < end:
            time.sleep(BETWEEN_LOOKS)
            found = self._known()
        return found is not False

    def is_absent(self, host: str) -> bool:
        """Whether this host had no program that could be used, when it was asked."""
        return os.path.exists(self._absent(host))

    def absent(self, host: str) -> None:
        """Remember that the host has none that can be used."""
        with suppress(OSError):  # it is asked again then
            self._put(self._absent(host))

    def present(self) -> None:
        """Remember that a host has it."""
        path = os.path.join(self.folder, PRESENT)
        if not os.path.exists(path):
            with suppress(OSError):
                self._put(path)

    def _known(self) -> bool | None:
        """True: a host has it. False: enough of them have not. None: neither is known."""
        names = os.listdir(self.folder)
        if PRESENT in names:
            return True
        return False if sum(name.startswith(ABSENT) for name in names) >= THOSE_THAT_DECIDE else None

    def _is_first(self) -> bool:
        """Whether this is one of the hosts that decide."""
        for number in range(THOSE_THAT_DECIDE):
            try:
                os.close(os.open(os.path.join(self.folder, f"{FIRST}{number}"), os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                continue
            return True
        return False

    def _absent(self, host: str) -> str:
        return os.path.join(self.folder, ABSENT + hashlib.sha256(host.encode("utf-8", "surrogateescape")).hexdigest())

    def _put(self, path: str) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT, 0o600))
