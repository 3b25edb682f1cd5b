# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of MIG layouts: a host whose GPUs are in use keeps its layout until they are free.

`mig-layout` with `from: pool` takes the layout of the pool; but where a GPU in use shows another than it would get, the
whole host keeps what it shows now, so that its layout changes at once and not GPU by GPU under its tenants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..module_utils.plan.gpu import Gpu
from ..module_utils.plan.mig import ALL, LISTED, Layout, Profile, parse_layout
from ..module_utils.plan.mig_goal import alike
from ..module_utils.plan.mig_layout import check
from ..module_utils.plan.mig_text import text_of
from ..module_utils.plan.unit_checks import refusal
from ..module_utils.plan.unit_names import MIG_LAYOUT
from .profile_units import FROM


def gated(settings: Mapping[str, Any], layout: Any, gpus: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of mig-layout with the pool's layout in the place of `from`; or, frozen, with what the GPUs show.

    The settings pass the host's check with the layout in them. `gpus` is as host_info returns it; where nobody looked
    it is empty, and the host itself keeps busy GPUs as they are.
    """
    wanted = {key: value for key, value in settings.items() if key != FROM} | {"layout": layout}
    present = [(gpu, found) for gpu in gpus if (found := _shown(gpu)) is not None]
    if not any(_in_use(gpu) and not _as_wanted(gpu, found, wanted) for gpu, found in present):
        return wanted
    layouts = {text_of(found) for _gpu, found in present}
    if len(layouts) == 1:
        return {"layout": layouts.pop()}
    return {"gpus": [{"select": {"uuid": gpu["uuid"]}, "layout": text_of(found)} for gpu, found in present]}


def _shown(gpu: Mapping[str, Any]) -> Layout | None:
    """What a GPU shows; None for one without MIG, and for one that does not tell."""
    text = gpu.get("layout")
    if not isinstance(text, str) or refusal(MIG_LAYOUT, {"layout": text}):
        return None
    return parse_layout(text, "layout")


def _in_use(gpu: Mapping[str, Any]) -> bool:
    """Whether an allocation has the GPU or a part of it, or a process computes on it."""
    return bool(gpu.get("allocations") or gpu.get("processes"))


def _as_wanted(gpu: Mapping[str, Any], found: Layout, wanted: Mapping[str, Any]) -> bool:
    """Whether a GPU shows what the settings are to give it, or is to be left alone by them."""
    index = gpu.get("index")
    itself = Gpu(
        index if isinstance(index, int) else -1, str(gpu.get("uuid")), str(gpu.get("pci")), str(gpu.get("name"))
    )
    layout = check(dict(wanted)).of(itself)
    return layout is None or same(found, layout)


def same(found: Layout, wanted: Layout) -> bool:
    """Whether what a GPU shows is a layout, by what they mean.

    As many of a profile as the GPU takes is shown by one that has nothing else. How many it takes is not known here:
    where one is missing the host adds it once the GPU is free, and there is nothing to keep that this would take away.
    """
    if wanted.kind == ALL:
        profile = wanted.devices[0][0]
        return found.kind == LISTED and all(_is(each, profile) for each, _count in found.devices)
    if found.kind != LISTED or wanted.kind != LISTED:
        return found.kind == wanted.kind
    return len(found.devices) == len(wanted.devices) and all(
        any(_is(each, profile) and count == number for each, count in found.devices)
        for profile, number in wanted.devices
    )


def _is(shown: Profile, wanted: Profile) -> bool:
    """Whether two names are one profile: firmwares differ in how much memory they say that it has."""
    return shown.compute == wanted.compute and alike(shown, wanted)
