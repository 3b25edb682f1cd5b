# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of the MPS service: it is stopped and removed, and its GPUs get the compute mode back that they had."""

from __future__ import annotations

from ..core.errors import NotReady
from ..core.plan import Past, Todo
from ..core.unknown import is_known
from . import gpu_sharing_service as service
from . import systemd
from .gpu_sharing_seen import DEFAULT, EXCLUSIVE, Now
from .gpu_sharing_service import SERVICE


def take_down(todo: Todo, now: Now, past: Past) -> None:
    """Stop and remove our service. Its file is the record of whose compute mode we set, so it goes last."""
    unit = now.unit
    with todo.lane(SERVICE):
        if unit.file is not None and not service.is_ours(unit.file):
            todo.note(f"{unit.path} is not ours, and stays: remove it by hand where it is not wanted")
            return
        served = service.served(unit.file)
        if not now.is_down:
            from .gpu_sharing_busy import is_busy

            if is_busy(todo, now, served or tuple(gpu.uuid for gpu, _card in now.gpus)):
                return
            from .gpu_sharing_steps import bring_down

            todo.add(bring_down(now.gpus if is_known(now.gpus) else (), served))
        else:
            give_back(todo, now, served, {})
        due = systemd.drop_unit(todo, unit)
        if now.systemd.running:
            systemd.reload(todo, now.systemd, (), due, past)


def give_back(todo: Todo, now: Now, uuids: tuple[str, ...], become: dict[str, str]) -> None:
    """Set the compute mode of GPUs that we served, and no longer do, to DEFAULT. Without a driver there is none.

    One that gets MIG has it there already.
    """
    if not uuids:
        return
    try:
        seen = tuple(now.gpus)
    except NotReady as fault:
        todo.note(f"{fault.message}; a driver that is loaded again has every compute mode at DEFAULT")
        return
    for gpu, card in seen:
        if gpu.uuid not in uuids or not is_known(card) or card.compute != EXCLUSIVE:
            continue
        if now.mig.get(gpu.uuid, card.mig) != "Enabled":
            from .gpu_sharing_steps import set_mode

            todo.add(set_mode(gpu, DEFAULT, seen, become))
