# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who would lose GPUs by what gpu-sharing is about to do."""

from __future__ import annotations

from ..core.errors import NotReady
from ..core.plan import Todo
from ..core.unknown import is_known
from .gpu_sharing_seen import EXCLUSIVE, Now
from .gpu_sharing_service import SERVICE
from .gpu_users import App
from .holds import claim, has, has_slots_only
from .unit_names import GPU_SHARING as UNIT

SERVER = "nvidia-cuda-mps-server"  # the daemon's own; it computes for its clients


def is_busy(todo: Todo, now: Now, uuids: tuple[str, ...]) -> bool:
    """Whether someone would lose one of these GPUs by what is to be done; says who.

    What runs is left alone while an allocation has one, or a process computes on one. To start what is down only an
    allocation of more than slots is in the way, since slots wait for it, and a process that got its GPU without it.
    """
    holds = [hold for hold in now.claims if any(has(hold, uuid) for uuid in uuids)]
    why = [claim(hold) for hold in holds if now.runs or not has_slots_only(hold)]
    why += [
        f"process {app.pid} ({app.name}) computes on {app.gpu_uuid}"
        for app in _computing(now)
        if app.gpu_uuid in uuids and not app.name.endswith(SERVER)
    ]
    if why:
        done = f"{SERVICE} is changed" if now.runs else f"{SERVICE} is started"
        todo.wait("Busy", f"{UNIT}: {'; '.join(dict.fromkeys(why))}: {done} once those end")
    return bool(why)


def _computing(now: Now) -> tuple[App, ...]:
    """The processes that compute and that are in the way; none where no driver runs."""
    try:
        apps = tuple(now.apps)
        exclusive = {gpu.uuid for gpu, card in now.gpus if is_known(card) and card.compute == EXCLUSIVE}
    except NotReady:
        return ()
    return tuple(app for app in apps if now.runs or app.gpu_uuid not in exclusive)
