# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-layout: the GPUs that have MIG, each divided as its layout says, as little changed as can be.

What nvidia-smi lists afterwards decides, never what it said or how it exited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import NotReady, Refused, StepFailed
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import Step
from ..core.unknown import is_known
from .gpu import LACKING, MODES, SELECT, Gpu, Select, first_match, matches
from .mig import EMPTY, OFF, Layout, parse_layout, shows, text_of
from .mig_boot import Target, as_they_are, keep_service
from .mig_state import InTheWay, Now, Seen, Shown, label
from .settings import strict
from .unit_names import GPU_SHARING
from .unit_names import MIG_LAYOUT as UNIT

if TYPE_CHECKING:
    from .mig_goal import Goal

LAYOUT = Field("layout", "layout", (str, dict, bool))  # off, unquoted in YAML, is false
FIELDS = (
    LAYOUT,
    Field("gpus", "gpus", (list,), (Field("select", "select", (dict,), SELECT), LAYOUT)),
    Field("from", "from", (str,)),
)
TOLD_FROM = 470  # the first branch whose nvidia-smi takes a start beside a profile


class Override(NamedTuple):
    """The layout of the GPUs that a selector takes first."""

    select: Select
    layout: Layout


class Settings(NamedTuple):
    """The layout of the host's GPUs, None for those that no selector takes not to be managed, and of some of them."""

    layout: Layout | None = None
    gpus: tuple[Override, ...] = ()

    def of(self, gpu: Gpu) -> Layout | None:
        """The layout of a GPU: of the first selector that takes it, else the host's."""
        at = first_match(tuple(entry.select for entry in self.gpus), gpu)
        return self.layout if at is None else self.gpus[at].layout


class Found(NamedTuple):
    """What the planning of the GPUs collects by UUID: what each is to be after a boot, and why busy ones wait.

    `unsettled` are those whose mode is set in this plan, and may turn out to need a reset.
    """

    targets: dict[str, Target]
    busy: dict[str, str]
    unsettled: list[str]


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused for what is no layout."""
    wire = strict(UNIT, FIELDS, given)
    if "from" in wire:
        raise Refused(
            f"{UNIT}: from: {wire['from']} is not rendered: the control plane, or the filter host_units, puts the "
            "pool's layout in its place; give layout"
        )
    if "layout" not in wire and not wire.get("gpus"):
        raise Refused(f"{UNIT}: neither layout nor gpus is given: say how GPUs are to be divided, or take the unit off")
    overrides = []
    for number, entry in enumerate(wire.get("gpus", ())):
        from .gpu_select import check_select

        place = f"{UNIT}: gpus[{number}]"
        if set(entry) != {"select", "layout"}:
            raise Refused(f"{place} needs select, which names its GPUs by uuid, pci, index or model, and layout")
        select = check_select(entry["select"], f"{place}.select")
        overrides.append(Override(select, parse_layout(entry["layout"], f"{place}.layout")))
    layout = parse_layout(wire["layout"], f"{UNIT}: layout") if "layout" in wire else None
    return Settings(layout, tuple(overrides))


def needs_change(gpu: Gpu, layout: Layout | None, shown: Shown) -> bool:
    """Whether the GPU is not as its layout says; raises why that is not known, and Refused where it cannot be."""
    if is_shown(layout, shown) or layout is None:
        return False
    way = way_of(gpu, layout, shown)
    return not (way.reached and shown.on is MODES.get(shown.pending, shown.on) is (layout.kind != OFF))


def is_shown(layout: Layout | None, shown: Shown) -> bool:
    """Whether the GPU is as its layout says by the names of its instances alone, or is not to be changed at all."""
    if layout is None or shown.current not in MODES:
        return True
    on = layout.kind != OFF
    return shows(layout, shown.on, shown.gis, shown.cis, shown.offered) and MODES.get(shown.pending, on) is on


# -- the plan


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """Each GPU in a lane of its own, once every GPU that answers is known to have room; then the boot service."""
    todo = Todo()
    if not now.gpus:
        raise NotReady(
            f"{UNIT}: nvidia-smi shows no GPU on this host: see that the driver fits it, or take the unit off"
        )
    _refuse(settings, now)
    debts = _make_way(todo, settings, now, past)
    found = Found({}, {}, [])
    for seen in now.gpus:
        layout = settings.of(seen.gpu)
        if layout is None:
            continue
        with todo.lane(seen.gpu.uuid):
            if seen.shown.current in LACKING:
                todo.note(f"{label(seen.gpu)} has no MIG, and stays as it is")
                continue
            _plan_gpu(todo, seen, layout, now, past, found)
    if (debts or past.owed) and not found.unsettled:  # else what was stopped for one reset would be for the next again
        from .mig_mode import bring_back

        bring_back(todo, debts, past)
    keep_service(todo, now, tuple(found.targets.values()), past)
    if found.busy:
        from .mig_busy import say_busy

        say_busy(todo, found.busy, now.busy)
    if past.applied.get(GPU_SHARING, {}).get("mode") == "mps" and any(target.on for target in found.targets.values()):
        todo.note("the unit gpu-sharing leaves out the GPUs that have MIG: MPS does not serve them")
    made = todo.plan()
    return made._replace(steps=_in_turns(made.steps))


def _in_turns(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps as the lanes take them beside each other: at each barrier of one, the others have their turn first."""
    turn: dict[str, int] = {}
    turns = []
    for step in steps:
        turns.append(turn.get(step.lane, 0) if step.lane else len(steps))  # the trunk waits for all lanes
        turn[step.lane] = turn.get(step.lane, 0) + step.barrier
    order = sorted(range(len(steps)), key=lambda at: turns[at])
    return tuple(steps[at] for at in order)


def absent(_now: Now, _past: Past) -> Plan:
    """Nothing is undone."""
    return Plan(
        notes=("MIG layouts stay, and bcd-mig.service makes them again at each boot: disable it where it is not to",)
    )


def _refuse(settings: Settings, now: Now) -> None:
    """Refuse a selector that takes no GPU, or only GPUs without MIG."""
    faults = []
    for number, entry in enumerate(settings.gpus):
        mine = [seen for seen in now.gpus if matches(entry.select, seen.gpu)]
        which = f"gpus[{number}].select ({entry.select.kind} {entry.select.value!r})"
        without = [seen.gpu for seen in mine if is_known(seen.shown) and seen.shown.current in LACKING]
        if not mine:
            from .gpu_unselected import there

            gpus = [seen.gpu for seen in now.gpus]
            faults.append(f"{which} takes none of this host's GPUs, {there(entry.select, gpus)}")
        elif len(without) == len(mine) and entry.layout.kind != OFF:
            faults.append(f"{which} takes only GPUs without MIG, {', '.join(map(label, without))}")
    if faults:
        raise Refused(f"{UNIT}: {'; '.join(faults)}: correct the settings")


def _make_way(todo: Todo, settings: Settings, now: Now, past: Past) -> tuple[str, ...]:
    """Where a GPU of this plan is reset, plan that nothing holds it; the debts of that."""
    if now.in_the_way == InTheWay():
        return ()
    from .mig_mode import make_way, resets

    for gpu, shown in now.gpus:
        layout = settings.of(gpu)
        if layout is None or not is_known(shown) or shown.current not in MODES or _busy(now, gpu):
            continue
        if resets(gpu, shown, layout.kind != OFF, now.in_the_way, past):
            return make_way(todo, now.in_the_way)
    return ()


def _busy(now: Now, gpu: Gpu) -> bool:
    """Whether the GPU is busy, or is not known to be free."""
    return not is_known(now.busy) or bool(now.busy.get(gpu.uuid))


def _plan_gpu(todo: Todo, seen: Seen, layout: Layout, now: Now, past: Past, found: Found) -> None:
    """One GPU's steps in its lane; what it is to be after a boot is found before what is not known ends the lane."""
    gpu, shown = seen
    if shown.current not in MODES:
        _without_mode(todo, gpu, shown)
        return
    if not needs_change(gpu, layout, shown):
        found.targets[gpu.uuid] = Target(gpu, shown.on, as_they_are(shown, _is_told(shown)))
        return
    from .mig_instances import as_they_will_be, plan_instances
    from .mig_mode import is_waiting, may_wait, plan_mode

    on, told = layout.kind != OFF, _is_told(shown)
    way = way_of(gpu, layout, shown)
    if now.busy[gpu.uuid]:
        found.targets[gpu.uuid] = Target(gpu, shown.on, as_they_are(shown, _is_told(shown)))
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


def _is_told(shown: Shown) -> bool:
    """Whether the driver takes the starts of instances."""
    return shown.branch >= TOLD_FROM


def way_of(gpu: Gpu, layout: Layout, shown: Shown) -> Goal:
    """The way to the layout from what the GPU has; raises Refused where it cannot have it."""
    from .mig_goal import goal, has, kinds_of
    from .mig_instances import cleared

    if layout.kind in (OFF, EMPTY):
        return cleared(shown)
    if not shown.offered:
        raise StepFailed(f"nvidia-smi mig -lgip offers no profile on {label(gpu)}: see the kernel's log for it")
    kinds = kinds_of(shown.offered, shown.placements, label(gpu))
    there = has(shown.gis, shown.cis, kinds, label(gpu))
    return goal(layout, kinds, there, label(gpu), _is_told(shown))
