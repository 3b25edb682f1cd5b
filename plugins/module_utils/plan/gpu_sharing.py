# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-sharing: how the clients of a GPU share it, by the MPS daemon or by the GPUs' own time slices."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.unknown import later
from .gpu_sharing_seen import Now, Rival
from .gpu_sharing_service import SERVICE
from .settings import strict
from .unit_names import GPU_SHARING as UNIT

FIELDS = (Field("mode", "mode", (str,)), Field("replicas", "replicas", (int,)))
MPS, TIMESLICE = "mps", "timeslice"
REPLICAS = {MPS: 10, TIMESLICE: 4}  # as the control plane has them
MOST = 48  # clients of one GPU
DOWN = "MPSDown"


class Settings(NamedTuple):
    """`replicas`: clients of one GPU, among which MPS divides it."""

    mode: str
    replicas: int


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused."""
    wire = strict(UNIT, FIELDS, {name: value for name, value in given.items() if (name, value) != ("mode", None)})
    mode = wire.get("mode")
    if mode is None:
        raise Refused(f"{UNIT}: mode is not given, and takes {MPS} or {TIMESLICE}: give one of them")
    if mode not in REPLICAS:
        raise Refused(f"{UNIT}: mode is {mode!r}, and takes {MPS} or {TIMESLICE}: correct the settings")
    replicas = wire.get("replicas", REPLICAS[mode])
    if not 1 <= replicas <= MOST:
        raise Refused(
            f"{UNIT}: replicas is {replicas}, and takes 1 to {MOST}, which is what one GPU serves: correct it"
        )
    return Settings(mode, replicas)


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """The daemon's service on every GPU without MIG; or, with time slices, no such service of ours."""
    if settings.mode == TIMESLICE:
        return absent(now, past)
    from .gpu_sharing_up import keep_up

    todo = Todo()
    if now.daemon is None or not now.runs:
        why = f"{SERVICE} is {now.state or 'not there'}" if not now.runs else f"its daemon does not answer ({now.said})"
        todo.condition(DOWN, "NotRunning", f"{why}: clients of the shared GPUs fail until it runs")
    for rival in now.rivals:
        todo.note(_rival(rival))
    with todo.lane(SERVICE):
        keep_up(todo, settings.replicas, now, past)
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """The service goes, and the compute modes that it set."""
    from .gpu_sharing_end import take_down

    todo = Todo()
    take_down(todo, now, past)
    return todo.plan()


def disturbs(settings: Settings | None, now: Now, past: Past) -> bool:
    """Whether the plan depends on who uses the GPUs, since it would change, end or start what serves them.

    `settings` None: the unit leaves. `now` has everything else already.
    """
    if settings is None or settings.mode == TIMESLICE:
        return not now.is_down
    if not now.runs:
        return True
    from .gpu_sharing_up import is_due

    try:
        return later(is_due, settings.replicas, now, past) is not False
    except Refused:  # the plan says it
        return True


def _rival(rival: Rival) -> str:
    whose = rival.service or f"process {rival.pid}"
    return (
        f"{whose} runs an MPS daemon too (process {rival.pid}, pipe directory {rival.pipe}), which keeps ours from the "
        f"GPUs that it has: stop it, and keep it from starting"
    )
