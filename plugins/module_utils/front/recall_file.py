# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of quiet turns, written: root's alone, one for each code that has run lately (see front.recall)."""

from __future__ import annotations

import os

from ..core import rootfs
from ..core.errors import Fault


def keep(path: str, text: str, most: int) -> None:
    """Replace the file, and of those beside it keep the `most` newest; a disk that takes nothing is no fault."""
    above = os.path.dirname(path)
    try:
        folder = rootfs.open_directory(above, create=True)
        try:
            os.fchmod(folder, 0o700)
            rootfs.write(path, text.encode(), 0o600)
            _prune(folder, os.path.basename(path), most)
        finally:
            os.close(folder)
    except (Fault, OSError):
        pass


def _prune(folder: int, newest: str, most: int) -> None:
    others = [name for name in os.listdir(folder) if name != newest]
    changed = {name: os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns for name in others}
    for name in sorted(others, key=changed.__getitem__, reverse=True)[most - 1 :]:
        os.unlink(name, dir_fd=folder)
