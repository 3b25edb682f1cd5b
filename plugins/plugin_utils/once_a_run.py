# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made once in a run of Ansible, and read by all the processes that work on its hosts."""

from __future__ import annotations

import fcntl
import os
from typing import Callable


def once(folder: str, name: str, make: Callable[[], bytes]) -> bytes:
    """The bytes of that name in the run's own directory; made by whoever comes first, while the others wait."""
    path = os.path.join(folder, name)
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    with open(f"{path}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        try:
            return _read(path)
        except FileNotFoundError:
            data = make()
        with open(f"{path}.part", "wb") as out:
            out.write(data)
        os.rename(out.name, path)
        return data


def _read(path: str) -> bytes:
    with open(path, "rb") as source:
        return source.read()
