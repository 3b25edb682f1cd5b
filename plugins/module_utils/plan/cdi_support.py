# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CDI version a container runtime reads, by the runtime's own version.

A runtime passes over a specification of a later version than its library knows, and then has none of its devices. From
the library that each release of the runtimes was built with.
"""

from __future__ import annotations

from .cdi import VERSIONS
from .program_version import Release

# Since this release, up to this version of CDI.
SUPPORT: dict[str, tuple[tuple[Release, str], ...]] = {
    "podman": (
        ((4, 1), "0.4.0"),
        ((4, 3), "0.5.0"),
        ((4, 7), "0.6.0"),
        ((5, 1), "0.7.0"),
        ((5, 2), "0.8.0"),
        ((5, 5), "1.0.0"),
    ),
    "containerd": (
        ((1, 7), "0.5.0"),
        ((1, 7, 12), "0.6.0"),
        ((1, 7, 16), "0.7.0"),
        ((1, 7, 27), "0.8.0"),
        ((2, 0, 5), "1.0.0"),
    ),
    "docker": (((25, 0), "0.6.0"), ((26, 1), "0.7.0"), ((27, 4), "0.8.0"), ((28, 2), "1.0.0")),
    "crio": (((1, 26), "0.5.0"), ((1, 28), "0.6.0"), ((1, 30), "0.7.0"), ((1, 31), "0.8.0"), ((1, 33), "1.0.0")),
}


def highest(runtime: str, release: Release) -> str:
    """The highest version of CDI that a release of a runtime reads, "" for none."""
    return ([version for since, version in SUPPORT[runtime] if release >= since] or [""])[-1]


def reads(runtime: str, release: Release, version: str) -> bool:
    """Whether a release of a runtime reads specifications of this version of CDI."""
    most = highest(runtime, release)
    return most != "" and VERSIONS.index(version) <= VERSIONS.index(most)
