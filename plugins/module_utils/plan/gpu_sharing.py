# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-sharing: how the clients of a GPU share it, by the MPS daemon or by the GPUs' own time slices."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import NotReady, Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.unknown import is_known
from . import gpu_sharing_service as service
from . import systemd
from .files import AGAIN, is_as, keep
from .gpu import App, Gpu
from .gpu_sharing_seen import DEFAULT, EXCLUSIVE, Now, Rival, Seen
from .gpu_sharing_service import RESTART, SERVICE, Share
from .settings import strict
from .unit_names import GPU_SHARING as UNIT

FIELDS = (Field("mode", "mode", (str,)), Field("replicas", "replicas", (int,)))
MPS, TIMESLICE = "mps", "timeslice"
REPLICAS = {MPS: 10, TIMESLICE: 4}  # as the control plane has them
MOST = 48  # clients of one GPU
DOWN = "MPSDown"
SERVER = "nvidia-cuda-mps-server"  # the daemon's own; it computes for its clients


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
    todo = Todo()
    if settings.mode == TIMESLICE:
        _take_down(todo, now, past)
        return todo.plan()
    if now.daemon is None or not now.runs:
        why = f"{SERVICE} is {now.state or 'not there'}" if not now.runs else f"its daemon does not answer ({now.said})"
        todo.condition(DOWN, "NotRunning", f"{why}: clients of the shared GPUs fail until it runs")
    for rival in now.rivals:
        todo.note(_rival(rival))
    with todo.lane(SERVICE):
        _keep_up(todo, settings, now, past)
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """The service goes, and the compute modes that it set."""
    todo = Todo()
    _take_down(todo, now, past)
    return todo.plan()


def _rival(rival: Rival) -> str:
    whose = rival.service or f"process {rival.pid}"
    return (
        f"{whose} runs an MPS daemon too (process {rival.pid}, pipe directory {rival.pipe}), which keeps ours from the "
        f"GPUs that it has: stop it, and keep it from starting"
    )


# -- the service


def _keep_up(todo: Todo, settings: Settings, now: Now, past: Past) -> None:
    """The service as it should be, running, with its limits in force. Nothing is touched under live holds."""
    if not now.systemd.running:
        raise NotReady(f"{UNIT}: systemd does not run here, and the MPS daemon is kept by it: use a host that has it")
    from . import gpu_sharing_daemon as daemon
    from .gpu_sharing_gpus import shares as shares_of

    shares, dead = shares_of(todo, now, past, settings.replicas)
    if now.programs.control is None:
        raise NotReady(
            f"{UNIT}: {daemon.CONTROL} is not installed yet: it comes with the driver's compute utilities "
            "(nvidia-compute-utils on Ubuntu and SUSE, nvidia-cuda-mps on Debian, nvidia-driver-cuda on RHEL)"
        )
    if not shares:
        return
    percentage = daemon.percentage_of(settings.replicas)
    if dead and now.daemon is not None and not (now.unit.behind or past.owed):
        from .gpu_sharing_lost import as_it_runs

        shares = as_it_runs(todo, now, shares, dead, percentage)
    text = daemon.render(now.programs, shares, percentage)
    differs = not is_as(now.unit.file, text)
    due = differs or now.unit.behind or bool({systemd.RELOAD, RESTART} & past.owed)
    served = service.served(now.unit.file)
    mine = tuple(share.uuid for share in shares)
    # One that is down serves nobody: what it served before, and does not any more, is nobody's loss.
    if (due or not now.runs) and _is_busy(todo, now, mine if now.is_down else (*served, *mine)):
        return
    become: dict[str, str] = {}
    _give_back(todo, now, tuple(uuid for uuid in served if uuid not in mine), become)
    keep(todo, now.unit.path, text, now.unit.file, owes=(systemd.RELOAD, RESTART), why=_replaced(now))
    if not now.unit.enabled:
        todo.add(systemd.enable_ours(now.unit))
    systemd.reload(todo, now.systemd, (now.unit,), differs, past, owes=(RESTART,))
    if due or not now.runs:
        _start(todo, now, shares, percentage, due)
    else:
        _prove(todo, now, shares, {gpu.uuid for gpu in dead}, percentage, become)
    _note_persistence(todo, now, shares)


def _replaced(now: Now) -> str:
    """How the sentence on the unit file ends where it replaces another."""
    return AGAIN if service.is_ours(now.unit.file) else ", in place of a service of this name that is not ours"


def _start(todo: Todo, now: Now, shares: tuple[Share, ...], percentage: int, due: bool) -> None:
    """Start it, or restart what runs; what systemd is about to start again by itself is waited for."""
    if now.state == "activating" and not due:
        raise NotReady(f"{UNIT}: systemd is starting {SERVICE}: if that goes on, see journalctl -u {SERVICE}")
    from .gpu_sharing_steps import bring_up

    todo.add(bring_up(now.gpus, shares, percentage, again=now.runs or now.state == "activating"))


def _prove(
    todo: Todo, now: Now, shares: tuple[Share, ...], dead: set[str], percentage: int, become: dict[str, str]
) -> None:
    """Hold what the daemon answers, and the compute modes of GPUs that are not dead, to what they should be."""
    from . import gpu_sharing_daemon as daemon

    mine = {share.uuid for share in shares} - dead
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


# -- the end of the service


def _take_down(todo: Todo, now: Now, past: Past) -> None:
    """Stop and remove our service. Its file is the record of whose compute mode we set, so it goes last."""
    unit = now.unit
    with todo.lane(SERVICE):
        if unit.file is not None and not service.is_ours(unit.file):
            todo.note(f"{unit.path} is not ours, and stays: remove it by hand where it is not wanted")
            return
        served = service.served(unit.file)
        if not now.is_down:
            if _is_busy(todo, now, served or tuple(gpu.uuid for gpu, _card in now.gpus)):
                return
            from .gpu_sharing_steps import bring_down

            todo.add(bring_down(now.gpus if is_known(now.gpus) else (), served))
        else:
            _give_back(todo, now, served, {})
        due = systemd.drop_unit(todo, unit)
        if now.systemd.running:
            systemd.reload(todo, now.systemd, (), due, past)


def _give_back(todo: Todo, now: Now, uuids: tuple[str, ...], become: dict[str, str]) -> None:
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
            _set_mode(todo, gpu, DEFAULT, seen, become)


# -- who is in the way


def _is_busy(todo: Todo, now: Now, uuids: tuple[str, ...]) -> bool:
    """Whether someone would lose one of these GPUs by what is to be done; says who.

    What runs is left alone while an allocation has one, or a process computes on one. To start what is down only an
    allocation of more than slots is in the way, since slots wait for it, and a process that got its GPU without it.
    """
    from .holds import claim, has, has_slots_only

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
