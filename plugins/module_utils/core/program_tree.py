# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of code that root runs: published whole, in one rename, below directories that only root can write."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Callable

from . import compiled, rootfs

LINKS = 40  # symbolic links on the way to one file, as many as the kernel follows
DRAFT = ".bcd-new"
MADE = "__pycache__"


def publish(folder: str, name: str, parts: Mapping[str, bytes]) -> None:
    """Make the directory `name` in `folder`, of parts by their relative paths, compiled for this interpreter.

    It is on disk before it has its name, and a reader sees all of it or nothing. Raises StepFailed where others could
    write, OSError where `name` is there.
    """
    draft = f".{name}{DRAFT}"
    discard(folder, draft)  # what a killed run left
    for path, data in parts.items():
        place, file = os.path.split(f"{folder}/{draft}/{path}")
        below = rootfs.open_directory(place, create=True)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(file, flags, 0o600, dir_fd=below), "wb") as out:
                out.write(data)
                os.fchmod(out.fileno(), 0o644)  # whatever the umask says
        finally:
            os.close(below)
    compile_all(f"{folder}/{draft}", f"{folder}/{name}")
    _sync(f"{folder}/{draft}")
    above = rootfs.open_directory(folder)
    try:
        os.rename(draft, name, src_dir_fd=above, dst_dir_fd=above)
        os.fsync(above)
    finally:
        os.close(above)


def compile_all(place: str, name: str) -> None:
    """Compile what lies in a directory as what will lie in `name`; what is compiled is never compared with its source.

    So a start reads no source, and nothing is written when the directory is read-only. All of it lies once more in one
    file, which the program starts from (see compiled).
    """
    import compileall
    from py_compile import PycInvalidationMode

    before = os.umask(0o022)
    try:
        compileall.compile_dir(
            place,
            quiet=2,
            force=True,
            stripdir=place,
            prependdir=name,
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )
        os.makedirs(f"{place}/{MADE}", exist_ok=True)
        with open(compiled.file_of(place), "wb") as out:
            out.write(compiled.gathered(place))
    finally:
        os.umask(before)


def _sync(place: str) -> None:
    for folder, _folders, names in os.walk(place):
        for path in (*(os.path.join(folder, name) for name in names), folder):
            seen = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(seen)
            finally:
                os.close(seen)


def is_whole(folder: str, name: str, parts: Mapping[str, bytes]) -> bool:
    """Whether the directory holds these parts alone, each root's own, and compiled for this interpreter.

    What is compiled lies in it twice, so that what a disk has damaged is not the same any more.
    """
    from importlib.util import cache_from_source

    place = f"{folder}/{name}"
    found = set()
    for at, _folders, names in os.walk(place):
        if not _is_roots(os.lstat(at), stat.S_ISDIR):
            return False
        found |= {os.path.join(at, file) for file in names if os.path.basename(at) != MADE}
    if found != {f"{place}/{path}" for path in parts}:
        return False
    for path, data in parts.items():
        here = f"{place}/{path}"
        if not _is_roots(os.lstat(here), stat.S_ISREG) or _bytes(here) != data:
            return False
        if path.endswith(".py") and not os.path.isfile(cache_from_source(here)):
            return False
    single = compiled.file_of(place)
    return os.path.isfile(single) and _bytes(single) == compiled.gathered(place)


def _bytes(path: str) -> bytes:
    with open(path, "rb") as source:
        return source.read()


def _is_roots(seen: os.stat_result, kind: Callable[[int], bool]) -> bool:
    return kind(seen.st_mode) and seen.st_uid == 0 and not seen.st_mode & 0o022


def discard(folder: str, name: str) -> None:
    """Remove what has this name, if it is there: a directory with all in it; no link is followed.

    A directory is first given the name of a draft, so that one that is half gone is never taken for what it was.
    """
    try:
        above = rootfs.open_directory(folder)
    except FileNotFoundError:
        return
    try:
        if not _is_directory(name, above):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=above)
            return
        if not name.endswith(DRAFT):
            draft = f".{name}{DRAFT}"
            discard(folder, draft)
            os.rename(name, draft, src_dir_fd=above, dst_dir_fd=above)
            name = draft
        for _place, folders, names, here in os.fwalk(name, topdown=False, follow_symlinks=False, dir_fd=above):
            for file in names:
                os.unlink(file, dir_fd=here)
            for below in folders:  # a link to a directory is listed with them
                (os.rmdir if _is_directory(below, here) else os.unlink)(below, dir_fd=here)
        os.rmdir(name, dir_fd=above)
    finally:
        os.close(above)


def _is_directory(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)
    except FileNotFoundError:
        return False


def not_roots(path: str) -> str:
    """What on the way to this file another account than root could change, links followed; "" where nothing is."""
    parts = [part for part in path.split("/") if part]
    walked, hops = "", 0
    while parts:
        here = f"{walked}/{parts.pop(0)}"
        seen = os.lstat(here)
        if seen.st_uid != 0:
            return here
        if stat.S_ISLNK(seen.st_mode):
            hops += 1
            if hops > LINKS:
                return here
            target = os.readlink(here)
            parts = [part for part in target.split("/") if part] + parts
            walked = "" if target.startswith("/") else walked
        elif seen.st_mode & 0o022:
            return here
        else:
            walked = here
    return ""
