# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG as values: profiles, what a GPU offers, the instances that it has, and the grammar of layouts.

A layout is `off` (MIG mode off), `empty` (MIG mode on, nothing in it), `all-<profile>` (as many as the GPU takes), or a
list of MIG devices, `3g.40gb,2g.20gb,1g.10gb:2`, as a mapping too: `{3g.40gb: 1, 1g.10gb: 4}`. A device is named as
`nvidia-smi -L` names it: `3g.40gb` fills its GPU instance, and `1c.3g.40gb:3` are three that share one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import StepFailed

if TYPE_CHECKING:
    from .mig_offered import Offered

PROFILE = re.compile(r"(?:([0-9]+)c\.)?([0-9]+)g\.([0-9]+)gb((?:[+-][a-z][a-z0-9.]*)?)")
# The sizes of compute instances that a GPU instance of so many slices takes; `nvidia-smi mig -lcip` says so too, but
# only of an instance that exists.
COMPUTE = {1: (1,), 2: (1, 2), 3: (1, 2, 3), 4: (1, 2, 4), 7: (1, 2, 3, 4, 7)}
OFF, EMPTY, ALL, LISTED = "off", "empty", "all", "listed"
PLAIN = re.compile(r"(?P<name>(?:[0-9]+c\.)?[0-9]+g\.[0-9]+gb)(?::(?P<count>[0-9]{1,3}))?")  # of a list's items


class Profile(NamedTuple):
    """A profile's name in its parts: "1c.3g.40gb+me" is 3 slices, 1 of them for compute, 40 GB, "+me"."""

    slices: int
    compute: int  # as many as there are slices where the name says nothing
    memory_gb: int
    attribute: str  # "", "+me", "+gfx", "+me.all", "-me"


class GpuInstance(NamedTuple):
    """One row of `nvidia-smi mig -lgi`."""

    id: int
    profile_name: str
    profile_id: int
    start: int
    size: int


class ComputeInstance(NamedTuple):
    """One row of `nvidia-smi mig -lci`."""

    gi: int
    id: int
    profile_name: str
    profile_id: int
    start: int
    size: int


def parse_profile(name: str) -> Profile | None:
    """The parts of a profile's name; None when it is none."""
    found = PROFILE.fullmatch(name)
    if not found:
        return None
    compute, slices, memory, attribute = found.groups()
    return Profile(int(slices), int(compute or slices), int(memory), attribute)


# -- layouts


class Layout(NamedTuple):
    """A layout as settings give it: its kind, and of a list how many devices of each profile, largest first.

    `all` has one profile, counted 0.
    """

    kind: str
    devices: tuple[tuple[Profile, int], ...] = ()


def parse_layout(given: Any, where: str) -> Layout:
    """A layout from its text or mapping; `where` names its place, "mig-layout: layout". Raises Refused.

    The word off, unquoted in YAML, arrives as false.
    """
    layout = _plain(given.strip()) if isinstance(given, str) else None
    if layout is None:
        from .mig_grammar import read

        return read(given, where)
    return layout


def _plain(text: str) -> Layout | None:
    """The layout of a text as most are: a word, or profiles without attributes; None for any other, right or wrong."""
    if text in (OFF, EMPTY):
        return Layout(text)
    is_all = text.startswith("all-")
    counts: Counter[Profile] = Counter()
    for item in text[len("all-") :].split(",") if is_all else text.split(","):
        found = PLAIN.fullmatch(item)
        profile = parse_profile(found["name"]) if found else None
        if not found or profile is None or not is_one(profile):
            return None
        count = 0 if is_all else int(found["count"] or 1)
        if (is_all and (counts or found["count"])) or not (is_all or count):
            return None
        counts[profile] += count
    return Layout(ALL if is_all else LISTED, largest_first(counts))


def is_one(profile: Profile) -> bool:
    """Whether a GPU instance may be of so many slices and so much memory, and a device of it compute with so many."""
    slices, compute = profile.slices, profile.compute
    return slices > 0 and profile.memory_gb > 0 and compute in COMPUTE.get(slices, range(1, slices + 1))


def largest_first(counts: Counter[Profile]) -> tuple[tuple[Profile, int], ...]:
    """Profiles with their counts, in the order that a layout's text has."""

    def size(item: tuple[Profile, int]) -> tuple[int, int, str, int]:
        profile = item[0]
        return (-profile.slices, -profile.memory_gb, profile.attribute, -profile.compute)

    return tuple(sorted(counts.items(), key=size))


# -- what a GPU shows


def devices_of(gis: Iterable[GpuInstance], cis: Iterable[ComputeInstance]) -> Counter[Profile]:
    """The MIG devices, as profiles; a GPU instance without a compute instance has none.

    Raises StepFailed for a name that is no profile's.
    """
    own = {gi.id: known(gi.profile_name) for gi in gis}
    found: Counter[Profile] = Counter()
    for ci in cis:
        if ci.gi not in own:
            raise StepFailed(f"nvidia-smi lists a compute instance of the GPU instance {ci.gi}, which it does not list")
        found[own[ci.gi]._replace(compute=known(ci.profile_name).compute)] += 1
    return found


def bare(gis: Iterable[GpuInstance], cis: Iterable[ComputeInstance]) -> tuple[GpuInstance, ...]:
    """GPU instances without a compute instance: half-made, and no MIG device."""
    made = {ci.gi for ci in cis}
    return tuple(gi for gi in gis if gi.id not in made)


def known(name: str) -> Profile:
    """The profile of a name that nvidia-smi printed; raises StepFailed when it is none."""
    profile = parse_profile(name)
    if profile is None:
        raise StepFailed(f"nvidia-smi shows an instance of the profile {name!r}, whose name is of no known form")
    return profile


def shows(
    layout: Layout,
    enabled: bool,
    gis: tuple[GpuInstance, ...],
    cis: tuple[ComputeInstance, ...],
    offered: tuple[Offered, ...] = (),
) -> bool:
    """Whether what the GPU shows is the layout by name and number.

    One of the kind `all` is where there are as many as the GPU offers in all; whether fewer are all that fit, is to be
    found by their placements.
    """
    if layout.kind == OFF or not enabled:
        return layout.kind == OFF and not enabled
    wanted = dict(layout.devices)
    if layout.kind == ALL:
        profile = layout.devices[0][0]
        whole = profile._replace(compute=profile.slices)
        total = next((each.total for each in offered if each.profile == whole), 0)
        wanted = {profile: total * (profile.slices // profile.compute)}
    return not bare(gis, cis) and devices_of(gis, cis) == wanted
