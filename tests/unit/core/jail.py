# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a function as root in a directory of the test's own: what writes to / must meet a real kernel's rules."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

# pylint: disable=unused-import
from ansible_collections.bettercompute.bcd.plugins.module_utils.core import (  # noqa: F401 - not to be had inside
    act,
    records_damaged,
    root_write,
    spawn,
    step,
)

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

NEWUSER = 0x10000000


def in_jail(tree: Path, call: Callable[..., Any], *given: Any) -> Any:
    """The result of the call in a child process whose root is the tree, or the exception that it raised."""
    forks = multiprocessing.get_context("fork")
    answers, answering = forks.Pipe(duplex=False)
    child = forks.Process(target=_answer, args=(answering, tree, call, given))
    child.start()
    answering.close()
    raised, value = answers.recv()
    child.join()
    if raised:
        raise value
    return value


def _answer(answering: Connection, tree: Path, call: Callable[..., Any], given: tuple[Any, ...]) -> None:
    try:
        enter(tree)
        answering.send((False, call(*given)))
    except Exception as fault:  # noqa: BLE001 - whatever it is, the parent raises it
        answering.send((True, fault))


def enter(tree: Path) -> None:
    """Make the tree this process's root directory, and this process root in it; there is no way back."""
    uid, gid = os.getuid(), os.getgid()
    if uid:
        if ctypes.CDLL(None, use_errno=True).unshare(NEWUSER):
            raise OSError(ctypes.get_errno(), "cannot make a user namespace")
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            Path("/proc/self", name).write_text(text)
    os.chroot(tree)
    os.chdir("/")
