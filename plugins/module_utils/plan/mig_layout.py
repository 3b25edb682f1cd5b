# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-layout: the GPUs that have MIG, each divided as its layout says, as little changed as can be.

What nvidia-smi lists afterwards decides, never what it said or how it exited.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import NotReady, Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.unknown import is_known
from .gpu import LACKING, MODES, SELECT, Gpu, Select, first_match, matches
from .mig import OFF, Layout, parse_layout, shows
from .mig_boot import Target, as_they_are, keep_service
from .mig_state import InTheWay, Now, Seen, Shown, label
from .settings import strict
from .unit_names import GPU_SHARING
from .unit_names import MIG_LAYOUT as UNIT

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
    from .mig_change import way_of

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
    if not made.steps:
        return made
    from .mig_change import in_turns

    return made._replace(steps=in_turns(made.steps))


def absent(_now: Now, _past: Past) -> Plan:
    """Nothing is undone."""
    return Plan(
        notes=("MIG layouts stay, and bcd-mig.service makes them again at each boot: disable it where it is not to",)
    )


def _refuse(settings: Settings, now: Now) -> None:
    """Refuse a selector that takes no GPU, or only GPUs without MIG."""
    for entry in settings.gpus:
        mine = [seen for seen in now.gpus if matches(entry.select, seen.gpu)]
        have = [seen for seen in mine if not (is_known(seen.shown) and seen.shown.current in LACKING)]
        if not mine or (entry.layout.kind != OFF and not have):
            from .mig_refused import refused

            raise refused([(entry.select, entry.layout) for entry in settings.gpus], now)


def _make_way(todo: Todo, settings: Settings, now: Now, past: Past) -> tuple[str, ...]:
    """Where a GPU of this plan is reset, plan that nothing holds it; the debts of that."""
    if now.in_the_way == InTheWay():
        return ()
    from .mig_change import make_way

    return make_way(todo, [(seen, settings.of(seen.gpu)) for seen in now.gpus], now, past)


def _plan_gpu(todo: Todo, seen: Seen, layout: Layout, now: Now, past: Past, found: Found) -> None:
    """One GPU's steps in its lane; what it is to be after a boot is found before what is not known ends the lane."""
    gpu, shown = seen
    if shown.current in MODES and not needs_change(gpu, layout, shown):
        found.targets[gpu.uuid] = Target(gpu, shown.on, as_they_are(shown, is_told(shown)))
        return
    from .mig_change import change

    change(todo, seen, layout, now, past, found)


def is_told(shown: Shown) -> bool:
    """Whether the driver takes the starts of instances."""
    return shown.branch >= TOLD_FROM
