# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver that is asked for no more: it stays, and what a killed pass took out comes back."""

from __future__ import annotations

from ..core.plan import Past, Plan, Todo
from . import initramfs
from .nvidia_driver import Now
from .nvidia_driver_repair import rebuild
from .nvidia_driver_swap import plan_return
from .nvidia_driver_upkeep import BLACKLIST, LANE


def leave(now: Now, past: Past) -> Plan:
    """Say what stays, and finish a killed pass."""
    todo = Todo()
    if now.loaded or now.library:
        todo.note("the NVIDIA driver stays installed and loaded, and packages that are held stay held")
    if now.native.file is not None:
        todo.note(
            f"{BLACKLIST} stays and keeps nouveau out: remove it, and rebuild the initramfs, to have nouveau back"
        )
    if initramfs.DEBT in past.owed:
        with todo.lane(initramfs.DEBT):
            rebuild(todo, now.native)
    if past.owed:
        with todo.lane(LANE):
            plan_return(todo, now.gpus if now.loaded is None else (), now.modules, now.stale, past)
    return todo.plan()
