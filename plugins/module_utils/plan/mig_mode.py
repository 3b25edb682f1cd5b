# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG mode of one GPU: on or off, and what it takes to make a mode that is pending the current one.

From Hopper on a mode changes at once. Older GPUs are reset for it, which the driver does by itself where nothing holds
the GPU; else the mode stays pending, nvidia-smi exits 0, and the GPU is reset here: this one alone.
"""

from __future__ import annotations

from ..core.errors import NotKnownYet
from ..core.plan import Past, Todo
from ..core.step import Effect, Step, run
from . import systemd
from .debts import debt, owed
from .gpu import MODES, Gpu
from .gpu_generations import generation
from .mig_state import InTheWay, Shown, label
from .mig_steps import mode, reset
from .unit_names import MIG_LAYOUT as UNIT

DRM = "nvidia_drm"
NEVER_RESET = frozenset(("hopper", "blackwell"))
# Services that keep every GPU open and come back without loss, with their programs. Fabric Manager is none: a board
# with NVSwitches needs it for the reset of a single GPU.
SERVICES = {
    "nvidia-persistenced.service": "nvidia-persistenced",
    "nvidia-dcgm.service": "nv-hostengine",
    "dcgm.service": "nv-hostengine",
    "dcgm-exporter.service": "dcgm-exporter",
}
LOAD = debt("load", DRM)


def is_waiting(shown: Shown, on: bool) -> bool:
    """Whether the wanted mode is set, and waits to take effect."""
    return MODES.get(shown.current) is not on and MODES.get(shown.pending) is on


def may_wait(gpu: Gpu, shown: Shown, on: bool) -> bool:
    """Whether the mode is to change, and may wait for a reset once it is set."""
    return MODES.get(shown.current) is not on and generation(gpu.name) not in NEVER_RESET


def needs_reset(gpu: Gpu, shown: Shown, on: bool) -> bool:
    """Whether only a reset of the GPU brings the mode that is set."""
    return is_waiting(shown, on) and may_wait(gpu, shown, on)


def effort(gpu: Gpu, shown: Shown, on: bool, way: InTheWay) -> Step:
    """What may bring a mode that waits: a reset, or where none is needed the mode once more. It may come to nothing."""
    # What holds the GPUs is part of the name, so that it is tried again once that has changed.
    tries = f"MIG mode {'on' if on else 'off'} of {gpu.uuid} beside {_listed(_holders(way))}"
    return reset(gpu, tries) if needs_reset(gpu, shown, on) else mode(gpu, on, tries)


def resets(gpu: Gpu, shown: Shown, on: bool, way: InTheWay, past: Past) -> bool:
    """Whether `plan_mode` plans a reset."""
    return needs_reset(gpu, shown, on) and not way.drm and effort(gpu, shown, on, way).tries not in past.tried


def plan_mode(todo: Todo, gpu: Gpu, shown: Shown, on: bool, way: InTheWay, past: Past) -> bool:
    """Plan the mode in the GPU's lane; whether what follows it can be planned too. False: the lane waits."""
    if shown.on is on and MODES.get(shown.pending, on) is on:
        return True
    if not is_waiting(shown, on):
        resets = may_wait(gpu, shown, on)
        todo.add(mode(gpu, on, resets=resets))
        if resets and _holders(way):  # then only nvidia-smi tells whether it has to be reset
            raise NotKnownYet(f"MIG mode of GPU {gpu.index} is turned {'on' if on else 'off'}")
        return True
    if needs_reset(gpu, shown, on) and way.drm:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: MIG mode of {label(gpu)} waits for a GPU reset, and {DRM} is in use (refcnt {way.drm}): end the "
            "display server that uses it, or reboot the node",
        )
        return False
    step = effort(gpu, shown, on, way)
    if step.tries in past.tried:
        todo.wait("RebootRequired", _in_vain(gpu, step, past.tried[step.tries], way))
        return False
    todo.add(step)
    return True


def _holders(way: InTheWay) -> tuple[str, ...]:
    return (*way.programs, *((DRM,) if way.drm is not None else ()))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def _in_vain(gpu: Gpu, step: Step, said: str, way: InTheWay) -> str:
    resetting = "--gpu-reset" in step.argv
    gone = {SERVICES[name] for name in way.services} if resetting else set()  # they were stopped for it
    left = tuple(name for name in way.programs if name not in gone)
    what = f"end {_listed(left)}, which has the GPUs open, or reboot the node" if left else "reboot the node"
    if resetting:
        failed = f"which failed ({said})" if said else "which changed nothing"
        return f"{UNIT}: MIG mode of {label(gpu)} waits for a GPU reset, {failed}: {what}"
    return f"{UNIT}: MIG mode of {label(gpu)} stays pending{f' ({said})' if said else ''}: {what}"


# -- what is taken out of a reset's way, and comes back


def make_way(todo: Todo, way: InTheWay) -> tuple[str, ...]:
    """Plan, before the resets, that what holds the GPUs lets go of them; the debts that `bring_back` then pays."""
    debts = []
    for name in way.services:
        with todo.lane(name):
            todo.add(systemd.control("stop", name, disruption="gpu", owes=(debt("start", name),)))
        debts.append(debt("start", name))
    if way.drm == 0:
        with todo.lane(DRM):
            gone = Effect("gone", f"/sys/module/{DRM}")
            action = f"unload the module {DRM}, which nothing uses and which keeps GPUs from being reset"
            todo.add(run(("rmmod", "--", DRM), action, disruption="gpu", effects=(gone,), owes=(LOAD,)))
        debts.append(LOAD)
    return tuple(debts)


def bring_back(todo: Todo, debts: tuple[str, ...], past: Past) -> None:
    """Plan that what was taken out of the way comes back, in this pass, or after one that was killed."""
    due = {*debts, *past.owed}
    if LOAD in due:
        with todo.lane(DRM):
            back = Effect("file", f"/sys/module/{DRM}/refcnt", "0\n")
            todo.add(run(("modprobe", "--", DRM), f"load the module {DRM} again", effects=(back,), pays=(LOAD,)))
    for name in owed(due, "start"):
        with todo.lane(name):
            todo.add(systemd.control("start", name, f"start {name} again", pays=(debt("start", name),)))
