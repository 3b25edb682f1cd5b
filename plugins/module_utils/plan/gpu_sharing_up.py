# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPS service of a host that is to have it: as it should be, running, with its limits in force."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import NotReady
from ..core.plan import Past, Todo
from . import gpu_sharing_daemon as daemon
from .files import is_as
from .gpu import Gpu
from .gpu_sharing_gpus import shares as shares_of
from .gpu_sharing_seen import EXCLUSIVE, Now, Seen
from .gpu_sharing_service import RESTART, SERVICE, Share
from .systemd_seen import RELOAD
from .unit_names import GPU_SHARING as UNIT


class Wish(NamedTuple):
    """What the service is to be: whom it serves, which of them are dead, a client's percentage, and its unit file."""

    shares: tuple[Share, ...]
    dead: tuple[Gpu, ...]
    percentage: int
    text: str


def is_due(replicas: int, now: Now, past: Past) -> bool:
    """Whether the service has to be changed or restarted; raises what `keep_up` says before it asks who uses GPUs."""
    wish = _wish(Todo(), replicas, now, past)
    return wish is not None and _is_due(wish, now, past)


def keep_up(todo: Todo, replicas: int, now: Now, past: Past) -> None:
    """Plan the service. Nothing is touched under live holds."""
    wish = _wish(todo, replicas, now, past)
    if wish is None:
        return
    due = _is_due(wish, now, past)
    become: dict[str, str] = {}  # compute modes that the plan has set, by UUID
    if due or not (now.runs and now.unit.enabled):
        from .gpu_sharing_change import bring_about

        if not bring_about(todo, now, wish, due, past, become):
            return
    if now.runs and not due:
        _prove(todo, now, wish, become)
    _note_persistence(todo, now, wish.shares)


def _wish(todo: Todo, replicas: int, now: Now, past: Past) -> Wish | None:
    """What the service is to be; None where there is no GPU for it."""
    if not now.systemd.running:
        raise NotReady(f"{UNIT}: systemd does not run here, and the MPS daemon is kept by it: use a host that has it")
    shares, dead = shares_of(todo, now, past, replicas)
    if now.programs.control is None:
        raise NotReady(
            f"{UNIT}: {daemon.CONTROL} is not installed yet: it comes with the driver's compute utilities "
            "(nvidia-compute-utils on Ubuntu and SUSE, nvidia-cuda-mps on Debian, nvidia-driver-cuda on RHEL)"
        )
    if not shares:
        return None
    percentage = daemon.percentage_of(replicas)
    if dead and now.daemon is not None and not (now.unit.behind or past.owed):
        from .gpu_sharing_lost import as_it_runs

        shares = as_it_runs(todo, now, shares, dead, percentage)
    return Wish(shares, dead, percentage, daemon.render(now.programs, shares, percentage))


def _is_due(wish: Wish, now: Now, past: Past) -> bool:
    return not is_as(now.unit.file, wish.text) or now.unit.behind or bool({RELOAD, RESTART} & past.owed)


def _prove(todo: Todo, now: Now, wish: Wish, become: dict[str, str]) -> None:
    """Hold what the daemon answers, and the compute modes of GPUs that are not dead, to what they should be."""
    shares, dead, percentage, _text = wish
    mine = {share.uuid for share in shares} - {gpu.uuid for gpu in dead}
    for gpu, card in now.gpus:
        with todo.lane(gpu.uuid):
            if gpu.uuid in mine and card.compute != EXCLUSIVE:
                _set_mode(todo, gpu, EXCLUSIVE, now.gpus, become)
    if now.daemon is None:
        raise NotReady(
            f"{UNIT}: the daemon of {SERVICE} does not answer ({now.said}): see journalctl -u {SERVICE} and "
            f"{daemon.LOG}/control.log, and restart it"
        )
    if not daemon.is_share(now.daemon.percentage, percentage):
        _set_limit(todo, shares, percentage, 0)
    for number, (share, text) in enumerate(zip(shares, now.daemon.memory)):
        if text.startswith(daemon.UNKNOWN):
            todo.note(f"this driver's MPS daemon limits no memory ({text}): a client can take all of a GPU's")
            break
        if share.uuid in mine and not daemon.is_memory(text, share.memory):
            _set_limit(todo, shares, percentage, 1 + number)


def _set_mode(todo: Todo, gpu: Gpu, mode: str, seen: tuple[Seen, ...], become: dict[str, str]) -> None:
    from .gpu_sharing_steps import set_mode

    todo.add(set_mode(gpu, mode, seen, become))


def _set_limit(todo: Todo, shares: tuple[Share, ...], percentage: int, number: int) -> None:
    from .gpu_sharing_steps import set_limit

    todo.add(set_limit(shares, percentage, number))


def _note_persistence(todo: Todo, now: Now, shares: tuple[Share, ...]) -> None:
    mine = {share.uuid for share in shares}
    off = [str(gpu.index) for gpu, card in now.gpus if gpu.uuid in mine and card.persistence == "Disabled"]
    if off:
        todo.note(
            f"persistence mode is off on GPU(s) {', '.join(off)}, where the driver forgets a compute mode as its last "
            "client ends: run nvidia-persistenced"
        )
