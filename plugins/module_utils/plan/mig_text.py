# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG in words: the names of profiles, and layouts as the texts that settings take."""

from __future__ import annotations

from .mig import (
    ALL,
    EMPTY,
    LISTED,
    OFF,
    ComputeInstance,
    GpuInstance,
    Layout,
    Profile,
    bare,
    devices_of,
    known,
    largest_first,
)


def name_of(profile: Profile) -> str:
    """The profile's name; compute slices are said where they are not all."""
    compute = "" if profile.compute == profile.slices else f"{profile.compute}c."
    return f"{compute}{profile.slices}g.{profile.memory_gb}gb{profile.attribute}"


def text_of(layout: Layout) -> str:
    """The layout's canonical text, which parses to an equal layout."""
    if layout.kind == ALL:
        return f"all-{name_of(layout.devices[0][0])}"
    if layout.kind != LISTED:
        return layout.kind
    return ",".join(name_of(profile) + (f":{count}" if count > 1 else "") for profile, count in layout.devices)


def layout_of(enabled: bool, gis: tuple[GpuInstance, ...], cis: tuple[ComputeInstance, ...]) -> str:
    """What a GPU shows as the text of a layout, which given back changes nothing.

    A GPU instance that lacks its compute instance counts as the device that it is to be: given back, it is completed.
    """
    if not enabled:
        return OFF
    counts = devices_of(gis, cis)
    for gi in bare(gis, cis):
        counts[known(gi.profile_name)] += 1
    return text_of(Layout(LISTED, largest_first(counts))) if counts else EMPTY
