# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG as values: profiles, what a GPU offers, and the instances that it has."""

from __future__ import annotations

import re
from typing import NamedTuple

PROFILE = re.compile(r"(?:(\d+)c\.)?(\d+)g\.(\d+)gb((?:[+-][a-z][a-z0-9.]*)?)")


class Profile(NamedTuple):
    """A profile's name in its parts: "1c.3g.40gb+me" is 3 slices, 1 of them for compute, 40 GB, "+me"."""

    slices: int
    compute: int  # as many as there are slices where the name says nothing
    memory_gb: int
    attribute: str  # "", "+me", "+gfx", "+me.all", "-me"


class Offered(NamedTuple):
    """One row of `nvidia-smi mig -lgip`; free and total are 0 of n while MIG mode is off."""

    id: int
    profile: Profile
    name: str
    free: int
    total: int


class Placements(NamedTuple):
    """One line of `nvidia-smi mig -lgipp`: where instances of the profile may start, and how many units they take."""

    profile_id: int
    starts: tuple[int, ...]
    size: int


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
