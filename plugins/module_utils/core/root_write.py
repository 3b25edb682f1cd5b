# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that root writes, whole or not at all, below directories that no other account can steer (see rootfs)."""

from __future__ import annotations

import os

from . import rootfs


def write(path: str, data: bytes, mode: int) -> None:
    """Replace the file in one rename, on disk before it returns; a reader sees the old file or the new one, whole."""
    directory, name = os.path.split(path)
    folder = rootfs.open_directory(directory, create=True)
    draft = f".{name}.bcd-new"
    try:
        _unlink(draft, folder)  # what a killed pass left
        out = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            _fill(out, data, mode)
        except BaseException:
            _unlink(draft, folder)
            raise
        finally:
            os.close(out)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def _fill(out: int, data: bytes, mode: int) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]
    os.fchmod(out, mode)
    os.fsync(out)


def remove(path: str) -> None:
    """Remove the file, if it is there."""
    directory, name = os.path.split(path)
    try:
        folder = rootfs.open_directory(directory)
    except FileNotFoundError:
        return
    try:
        _unlink(name, folder)
        _unlink(f".{name}.bcd-new", folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def _unlink(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
