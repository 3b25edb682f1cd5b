# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's package names, by distribution, release, and the repository that offers them.

The sets are of a GPU server: what only a desktop needs is left out where the names allow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .distribution import Distribution
from .package_rows import Package, upstream

TOOLKIT = ("nvidia-container-toolkit",)


class PackageSet(NamedTuple):
    """The packages of one driver flavour and branch, as one kind of repository names them.

    `driver` packages carry the driver's version, `beside` have versions of their own (headers, prebuilt modules).
    `follows` begins the names of the metapackages that bring the module of each kernel to come. `first` is installed
    before the others (a pinning package), `stream` a module stream that has to be enabled.
    `prebuilt`: the kernel module is built and signed by the distribution. `hold`: nothing but a hold keeps the branch.
    `rivals`: packages of the other flavour that go in the same transaction, where they are installed.
    """

    repository: str
    driver: tuple[str, ...]
    beside: tuple[str, ...] = ()
    follows: str = ""
    first: str = ""
    stream: str = ""
    prebuilt: bool = False
    hold: bool = False
    rivals: tuple[str, ...] = ()


def driver_globs(distribution: Distribution) -> tuple[str, ...]:
    """Names and globs of everything that belongs to an installed driver, for the look."""
    if distribution.family == "debian":
        driver = ("nvidia-*", "libnvidia-*", "cuda-drivers*", "linux-modules-nvidia-*", "libcuda1", "firmware-nvidia-*")
        return (*driver, "linux-image-*") if distribution.is_ubuntu else driver
    if distribution.family == "suse":
        return ("nvidia-*", "nv-prefer-*")
    return ("nvidia-*", "kmod-nvidia*", "libnvidia-*", "cuda-drivers*")


def driver_sets(
    distribution: Distribution, branch: str, is_open: bool, kernel: str, signed: bool
) -> tuple[PackageSet, ...]:
    """The sets of a branch and flavour in order of preference.

    `kernel` is the running kernel's release; `signed`: Secure Boot is on, prebuilt and signed modules come first.
    """
    if distribution.family == "debian":
        from .nvidia_names_debian import sets

        return sets(distribution, branch, is_open, kernel, signed)
    from .nvidia_names_rpm import red_hat, suse

    return suse(branch, is_open, kernel) if distribution.family == "suse" else (red_hat(distribution, branch, is_open),)


def astray(sets: tuple[PackageSet, ...], installed: Iterable[Package], version: str) -> tuple[Package, ...]:
    """The driver packages of the sets that are not installed at the driver's version, or not whole."""
    names = {name for one in sets for name in one.driver}
    mine = [package for package in installed if package.name in names]
    # Of a kernel's module several versions may be installed.
    right = {package.name for package in mine if upstream(package.version) == version and package.whole}
    return tuple(package for package in mine if package.name not in right)
