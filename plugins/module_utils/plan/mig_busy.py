# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for GPUs that are in use: whether allocations hold them, or processes that no allocation brought."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.plan import Todo
from .unit_names import MIG_LAYOUT as UNIT

PROCESS = "process "  # how a clause on a process begins; one on an allocation never does


def say_busy(todo: Todo, waiting: Mapping[str, str], busy: Mapping[str, tuple[str, ...]]) -> None:
    """Wait for the GPUs of `waiting`, a sentence by UUID, for which `busy` has who uses each, clause by clause."""
    used = [uuid for uuid in waiting if all(why.startswith(PROCESS) for why in busy[uuid])]
    held = [uuid for uuid in waiting if uuid not in used]
    who = [f"{', '.join(held)} hold allocations"] if held else []
    who += [f"processes use {', '.join(used)}"] if used else []
    message = f"{UNIT}: {' and '.join(who)}; they are repartitioned once those end: {'; '.join(waiting.values())}"
    todo.wait("Busy", message)
