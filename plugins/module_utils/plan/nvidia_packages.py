# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's package names, by distribution, release, and the repository that offers them.

Which repository serves a host is never guessed: of several sets of names, the first that the host's own index offers
at the wanted version is taken, and what is installed already is kept to.
"""

from __future__ import annotations

from typing import NamedTuple

from .distribution import Distribution
from .packages import Offer, Packages, Wanted

TOOLKIT = ("nvidia-container-toolkit",)


class PackageSet(NamedTuple):
    """The packages of one driver flavour and branch, as one kind of repository names them.

    `driver` packages carry the driver's version, `beside` have versions of their own (headers, prebuilt modules).
    `first` is installed before the others (a pinning package), `stream` a module stream that has to be enabled.
    `prebuilt`: the kernel module is built and signed by the distribution. `hold`: nothing but a hold keeps the branch.
    `rivals`: packages of the other flavour that go in the same transaction, where they are installed.
    """

    repository: str
    driver: tuple[str, ...]
    beside: tuple[str, ...] = ()
    first: str = ""
    stream: str = ""
    prebuilt: bool = False
    hold: bool = False
    rivals: tuple[str, ...] = ()


class Choice(NamedTuple):
    """A set that the index can serve: its packages with exact versions, and the driver's version, "580.95.05"."""

    set: PackageSet
    wanted: tuple[Wanted, ...]
    version: str


def driver_globs(distribution: Distribution) -> tuple[str, ...]:
    """Names and globs of everything that belongs to an installed driver, for the look."""
    raise NotImplementedError


def driver_sets(
    distribution: Distribution, branch: str, is_open: bool, kernel: str, signed: bool
) -> tuple[PackageSet, ...]:
    """The sets of a branch and flavour in order of preference.

    `kernel` is the running kernel's release; `signed`: Secure Boot is on, prebuilt and signed modules come first.
    """
    raise NotImplementedError


def names_of(sets: tuple[PackageSet, ...]) -> tuple[str, ...]:
    """All names of the sets, to ask the index for."""
    raise NotImplementedError


def choose(
    sets: tuple[PackageSet, ...], offered: tuple[Offer, ...], now: Packages, branch: str, version: str = ""
) -> Choice | None:
    """The set to install, at the exact driver version or at the branch's newest; None when no set can be served.

    A set of which packages are installed already comes before others. Packages `beside` that are not offered are
    left out, except a prebuilt module, without which its set is none.
    """
    raise NotImplementedError


def unserved(
    sets: tuple[PackageSet, ...], offered: tuple[Offer, ...], distribution: Distribution, branch: str, version: str = ""
) -> str:
    """The sentence for a driver that no repository of the host offers: packages, version, and what is there instead.

    A transitional package, which has the branch in its name and another in its version, is said to be one.
    """
    raise NotImplementedError


def fabric_manager_names(distribution: Distribution, branch: str) -> tuple[str, ...]:
    """Names that Fabric Manager of a branch may have, in order of preference."""
    raise NotImplementedError
