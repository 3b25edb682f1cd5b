# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU offers of MIG: profiles, and where their instances may start."""

from __future__ import annotations

from typing import NamedTuple

from .mig import Profile


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
