# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""1 GiB pages that the boot loader reserves, where the running kernel could not find the memory in one piece."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from ..core.plan import Past, Todo
from ..core.state import STATE
from ..core.step import File
from .files import drop, keep
from .pages import Gap, listed
from .unit_names import HUGEPAGES as UNIT

if TYPE_CHECKING:
    from .bootargs import Arguments
    from .loader import Boot

RECORD = f"{STATE}/hugepages-1g-boot"
ARGUMENTS = f"{STATE}/bootargs/hugepages"  # what `bootargs` records of this unit
VERSION = 1


class Reservation(NamedTuple):
    """Our record of a reservation, our record of its boot arguments, and the boot loader.

    `boot` is None where it was not looked at, because nothing is reserved and nothing is short.
    """

    record: File | None = None
    arguments: File | None = None
    boot: Boot | None = None

    @property
    def made(self) -> bool:
        """Whether there is one, or the beginning of one that a killed pass left."""
        return self.record is not None or self.arguments is not None


def render_record(total: int) -> str:
    """The record: how many pages of 1 GiB are reserved on the whole host."""
    return json.dumps({"count": total, "version": VERSION}, sort_keys=True) + "\n"


def reserve(
    todo: Todo, total: int, tokens: tuple[str, ...], gaps: tuple[Gap, ...], seen: Reservation, past: Past
) -> None:
    """Plan a reservation of `total` pages by `tokens` where `gaps` are left; keep one in step, or drop it.

    The record is written before the arguments and goes after them, so that a killed pass is taken up by the next.
    """
    if seen.boot is None or not (seen.made or (total and gaps)):
        return
    from .bootargs import LANE, keep_arguments  # a host without a reservation does not load the boot loaders

    with todo.lane(LANE):
        if total and seen.boot.loader.tool:
            keep(todo, RECORD, render_record(total), seen.record)
        stand = keep_arguments(todo, UNIT, tokens, seen.boot, past)
        if not total:
            drop(todo, RECORD, seen.record)
        elif gaps and seen.boot.loader.tool and LANE not in past.failed:
            todo.wait(*_wait(" ".join(tokens), gaps, stand))


def _wait(tokens: str, gaps: tuple[Gap, ...], stand: Arguments) -> tuple[str, str]:
    """What the missing pages wait for: a boot, a boot that really has the arguments, or memory that is not there."""
    found = f"{UNIT}: pages of 1 GiB found: {listed(gaps)}"
    if stand.active:
        return "NotReady", (
            f"{found}, although this boot has {tokens}: the host has no more memory in such pieces, so lower pages1g"
        )
    if stand.booted_without:
        return "RebootRequired", (
            f"{found}, and {stand.loader} was to reserve them, but this boot came up without {tokens} "
            f"(booted without the argument): see which boot entry it takes, then reboot the node"
        )
    return "RebootRequired", f"{found}; the boot loader reserves them from the next boot: reboot the node"
