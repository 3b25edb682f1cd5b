# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that is not as its layout says: the way there, and the steps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import StepFailed
from ..core.plan import Past, Todo
from ..core.step import Step
from ..core.unknown import is_known
from .gpu import MODES, Gpu
from .mig import EMPTY, OFF, Layout
from .mig_boot import Target, as_they_are
from .mig_goal import Goal, goal, has, kinds_of
from .mig_instances import as_they_will_be, cleared, plan_instances
from .mig_layout import is_told
from .mig_mode import is_waiting, may_wait, plan_mode, resets
from .mig_mode import make_way as clear_way
from .mig_state import Now, Seen, Shown, label
from .mig_text import text_of
from .unit_names import MIG_LAYOUT as UNIT

if TYPE_CHECKING:
    from .mig_layout import Found


def way_of(gpu: Gpu, layout: Layout, shown: Shown) -> Goal:
    """The way to the layout from what the GPU has; raises Refused where it cannot have it."""
    if layout.kind in (OFF, EMPTY):
        return cleared(shown)
    if not shown.offered:
        raise StepFailed(f"nvidia-smi mig -lgip offers no profile on {label(gpu)}: see the kernel's log for it")
    kinds = kinds_of(shown.offered, shown.placements, label(gpu))
    there = has(shown.gis, shown.cis, kinds, label(gpu))
    return goal(layout, kinds, there, label(gpu), is_told(shown))


def change(todo: Todo, seen: Seen, layout: Layout, now: Now, past: Past, found: Found) -> None:
    """The steps of one GPU that is not as its layout says; what it is to be after a boot is found before they are."""
    gpu, shown = seen
    if shown.current not in MODES:
        _without_mode(todo, gpu, shown)
        return
    on, told = layout.kind != OFF, is_told(shown)
    way = way_of(gpu, layout, shown)
    if now.busy[gpu.uuid]:
        found.targets[gpu.uuid] = Target(gpu, shown.on, as_they_are(shown, is_told(shown)))
        found.busy[gpu.uuid] = "; ".join((f"{label(gpu)}: {', '.join(now.busy[gpu.uuid])}", *_forced(way, layout)))
        return
    found.targets[gpu.uuid] = Target(gpu, on, as_they_will_be(way, told) if on else ())
    if shown.on and not on:
        plan_instances(todo, gpu, way, layout, told)
    if may_wait(gpu, shown, on) and not is_waiting(shown, on) and gpu.uuid not in past.failed:
        found.unsettled.append(gpu.uuid)
    if plan_mode(todo, gpu, shown, on, now.in_the_way, past) and on:
        plan_instances(todo, gpu, way, layout, told)


def _forced(way: Goal, layout: Layout) -> tuple[str, ...]:
    ids = ", ".join(map(str, way.forced))
    return (f"{text_of(layout)} fits only after clearing gi {ids}",) if way.forced else ()


def _without_mode(todo: Todo, gpu: Gpu, shown: Shown) -> None:
    """A GPU that has MIG and shows no mode: it is dead, or waits for a reset that it did not get."""
    said = f"{UNIT}: {label(gpu)} shows {shown.current} for its MIG mode"
    if "requires reset" not in shown.current:
        raise StepFailed(f"{said}: see the kernel's log for it")
    todo.wait("RebootRequired", f"{said}: reboot the node")


def make_way(todo: Todo, wanted: list[tuple[Seen, Layout | None]], now: Now, past: Past) -> tuple[str, ...]:
    """Where a GPU of this plan is reset, plan that nothing holds it; the debts of that."""
    for (gpu, shown), layout in wanted:
        if layout is None or not is_known(shown) or shown.current not in MODES or _busy(now, gpu):
            continue
        if resets(gpu, shown, layout.kind != OFF, now.in_the_way, past):
            return clear_way(todo, now.in_the_way)
    return ()


def _busy(now: Now, gpu: Gpu) -> bool:
    """Whether the GPU is busy, or is not known to be free."""
    return not is_known(now.busy) or bool(now.busy.get(gpu.uuid))


def in_turns(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps as the lanes take them beside each other: at each barrier of one, the others have their turn first."""
    turn: dict[str, int] = {}
    turns = []
    for step in steps:
        turns.append(turn.get(step.lane, 0) if step.lane else len(steps))  # the trunk waits for all lanes
        turn[step.lane] = turn.get(step.lane, 0) + step.barrier
    order = sorted(range(len(steps)), key=lambda at: turns[at])
    return tuple(steps[at] for at in order)
