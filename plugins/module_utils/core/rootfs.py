# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes that no other account can steer: every directory from / down is root's alone, held open while root writes.

Each component is opened relative to the one before it without following a symbolic link, and checked on the open
descriptor, so that a directory swapped in between changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat

from .errors import StepFailed


def open_directory(path: str, create: bool = False) -> int:
    """A descriptor of the directory; raises FileNotFoundError when it is absent and `create` is false.

    Raises StepFailed, not retryable, for a component that is a symbolic link or not a directory, that another
    account owns, or that its group or others can write.
    """
    here = _checked(os.open("/", os.O_RDONLY | os.O_DIRECTORY), "/")
    walked = ""
    try:
        for part in [part for part in path.split("/") if part]:
            walked += "/" + part
            below = _checked(_descend(here, part, walked, create), walked)
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _descend(above: int, part: str, walked: str, create: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(part, flags, dir_fd=above)
    except FileNotFoundError:
        if not create:
            raise
        os.mkdir(part, 0o755, dir_fd=above)
        below = os.open(part, flags, dir_fd=above)
        os.fchmod(below, 0o755)  # whatever the umask says
        return below
    except NotADirectoryError:
        raise _not_roots(walked) from None
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise _not_roots(walked) from None
        raise


def _checked(directory: int, path: str) -> int:
    seen = os.fstat(directory)
    if stat.S_ISDIR(seen.st_mode) and seen.st_uid == 0 and not seen.st_mode & 0o022:
        return directory
    os.close(directory)
    raise _not_roots(path)


def _not_roots(path: str) -> StepFailed:
    return StepFailed(
        f"{path} is not a directory only root can write: bcd will not write as root under it", retryable=False
    )


def write(path: str, data: bytes, mode: int) -> None:
    """Replace the file in one rename, on disk before it returns; a reader sees the old file or the new one, whole."""
    from . import root_write

    root_write.write(path, data, mode)


def remove(path: str) -> None:
    """Remove the file, if it is there."""
    from . import root_write

    root_write.remove(path)


def open_lock(path: str) -> int:
    """A descriptor for locking, in root's directory, of a file that only root can open."""
    directory, name = os.path.split(path)
    folder = open_directory(directory, create=True)
    try:
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
