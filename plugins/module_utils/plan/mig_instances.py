# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that make one GPU's instances those of its layout, and what they are to be after a boot."""

from __future__ import annotations

from itertools import groupby

from ..core.errors import NotKnownYet
from ..core.plan import Todo
from .gpu import Gpu
from .mig import Layout, known
from .mig_boot import Instance, by_place
from .mig_goal import Goal, Has, New, Sizes, full
from .mig_placement import Kind
from .mig_state import Shown
from .mig_steps import create, create_parts, destroy, destroy_parts
from .mig_text import text_of


def cleared(shown: Shown) -> Goal:
    """The way to a GPU without instances."""
    return Goal(
        clear=tuple(
            Has(gi, Kind(gi.profile_name, known(gi.profile_name), (), gi.size, 0), shown.parts_of(gi))
            for gi in shown.gis
        )
    )


def plan_instances(todo: Todo, gpu: Gpu, way: Goal, layout: Layout, told: bool) -> None:
    """Plan, in the GPU's lane, what goes, then what comes. A look follows what is destroyed before anything is made."""
    filled = tuple(one.gi.id for one in way.clear if one.cis)
    if filled:
        todo.add(destroy_parts(gpu, filled))
    for kept in way.keep:
        if kept.drop:
            todo.add(destroy_parts(gpu, (kept.gi.id,), kept.drop))
    if way.clear:
        todo.add(destroy(gpu, tuple(one.gi.id for one in way.clear), _why(way, layout)))
    for kept in way.keep:
        if kept.add:
            todo.add(create_parts(gpu, kept.gi.id, parts(kept.kind, kept.add)))
    new = sorted(way.create, key=lambda one: not _filled(one)) if told else way.create
    for is_filled, some in groupby(new, _filled):
        todo.add(create(gpu, tuple((one.kind.name, one.start if told else None) for one in some), is_filled))
    if not all(map(_filled, new)):  # their compute instances are made by their ids
        raise NotKnownYet(f"GPU instances of GPU {gpu.index} are created")


def _filled(one: New) -> bool:
    return full((one.kind, one.sizes))


def _why(way: Goal, layout: Layout) -> str:
    if way.forced:
        return f"{text_of(layout)} fits only after clearing gi {', '.join(map(str, way.forced))}"
    return f"the layout {text_of(layout)} has no place for it"


def parts(kind: Kind, sizes: Sizes) -> tuple[str, ...]:
    """The names of compute instances of a GPU instance, "1c.3g.40gb", "3g.40gb"."""
    return tuple(kind.name if size == kind.profile.slices else f"{size}c.{kind.name}" for size in sizes)


# -- after a boot


def as_they_will_be(way: Goal, told: bool) -> tuple[Instance, ...]:
    """The instances that a GPU is to have; an old driver puts those that are made where it likes, in their order."""
    stay = [_instance(one.kind, one.sizes, one.gi.start, one.gi.id) for one in way.keep]
    come = [_instance(one.kind, one.sizes, one.start, None) for one in way.create]
    found = tuple(sorted((*stay, *come), key=by_place))
    return found if told else tuple(one._replace(start=None) for one in (*stay, *come))


def _instance(kind: Kind, sizes: Sizes, start: int, gi: int | None) -> Instance:
    return Instance(kind.name, start, () if full((kind, sizes)) else parts(kind, sizes), gi)
