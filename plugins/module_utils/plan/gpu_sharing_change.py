# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPS service where it is not there as it should be: written, enabled, and started or restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import NotReady
from ..core.plan import Past, Todo
from . import gpu_sharing_service as service
from . import systemd
from .files import AGAIN, is_as, keep
from .gpu_sharing_busy import is_busy
from .gpu_sharing_end import give_back
from .gpu_sharing_seen import Now
from .gpu_sharing_service import RESTART, SERVICE
from .gpu_sharing_steps import bring_up
from .systemd_seen import RELOAD
from .unit_names import GPU_SHARING as UNIT

if TYPE_CHECKING:
    from .gpu_sharing_up import Wish


def bring_about(todo: Todo, now: Now, wish: Wish, due: bool, past: Past, become: dict[str, str]) -> bool:
    """Plan the service, unless someone would lose a GPU by it; whether it was planned.

    `due`: what runs has to be restarted. `become` collects the compute modes that the plan sets, by UUID.
    """
    served = service.served(now.unit.file)
    mine = tuple(share.uuid for share in wish.shares)
    # One that is down serves nobody: what it served before, and does not any more, is nobody's loss.
    if (due or not now.runs) and is_busy(todo, now, mine if now.is_down else (*served, *mine)):
        return False
    give_back(todo, now, tuple(uuid for uuid in served if uuid not in mine), become)
    differs = not is_as(now.unit.file, wish.text)
    keep(todo, now.unit.path, wish.text, now.unit.file, owes=(RELOAD, RESTART), why=_replaced(now))
    if not now.unit.enabled:
        todo.add(systemd.enable_ours(now.unit))
    systemd.reload(todo, now.systemd, (now.unit,), differs, past, owes=(RESTART,))
    if due or not now.runs:
        _start(todo, now, wish, due)
    return True


def _replaced(now: Now) -> str:
    """How the sentence on the unit file ends where it replaces another."""
    return AGAIN if service.is_ours(now.unit.file) else ", in place of a service of this name that is not ours"


def _start(todo: Todo, now: Now, wish: Wish, due: bool) -> None:
    """Start it, or restart what runs; what systemd is about to start again by itself is waited for."""
    if now.state == "activating" and not due:
        raise NotReady(f"{UNIT}: systemd is starting {SERVICE}: if that goes on, see journalctl -u {SERVICE}")
    todo.add(bring_up(now.gpus, wish.shares, wish.percentage, again=now.runs or now.state == "activating"))
