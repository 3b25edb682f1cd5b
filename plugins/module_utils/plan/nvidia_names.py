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
    if distribution.is_ubuntu:
        return (*_ubuntu(branch, is_open, kernel, signed), *_nvidia_metas(branch, is_open))
    if distribution.family == "debian":
        return (*_nvidia_debian(branch, is_open), *_nvidia_metas(branch, is_open), _debian(is_open))
    if distribution.family == "suse":
        return _suse(branch, is_open, kernel)
    return (_red_hat(distribution, branch, is_open),)


def _ubuntu(branch: str, is_open: bool, kernel: str, signed: bool) -> tuple[PackageSet, ...]:
    """Ubuntu's archive: the server branch, with a module built here or Ubuntu's own; then the desktop's branch.

    The names without -server are NVIDIA's repository's too, up to 580.
    """
    flavour = "-open" if is_open else ""
    server = f"{branch}-server"
    tools = (f"nvidia-utils-{server}", f"nvidia-compute-utils-{server}")
    modules = f"linux-modules-nvidia-{server}{flavour}"
    built = PackageSet("Ubuntu's archive", (f"nvidia-headless-{server}{flavour}", *tools))
    prebuilt = PackageSet(
        "Ubuntu's archive, with its signed modules",
        (f"nvidia-headless-no-dkms-{server}{flavour}", *tools),
        (f"{modules}-{kernel}",),
        follows=modules,
        prebuilt=True,
    )
    plain = PackageSet(
        "Ubuntu's archive or NVIDIA's repository for it",
        (f"nvidia-headless-{branch}{flavour}", f"nvidia-utils-{branch}", f"nvidia-compute-utils-{branch}"),
    )
    return (prebuilt, built, plain) if signed else (built, prebuilt, plain)


def _nvidia_debian(branch: str, is_open: bool) -> tuple[PackageSet, ...]:
    """NVIDIA's repository for Debian, without the desktop; a pinning package keeps the branch."""
    kernel = "nvidia-kernel-open-dkms" if is_open else "nvidia-kernel-dkms"
    driver = ("nvidia-driver-cuda", kernel)
    return (
        PackageSet("NVIDIA's repository", driver, ("nvidia-persistenced",), first=f"nvidia-driver-pinning-{branch}"),
    )


def _nvidia_metas(branch: str, is_open: bool) -> tuple[PackageSet, ...]:
    """The metapackages of NVIDIA's repositories for Debian and Ubuntu: with the branch in the name, then without."""
    name = "nvidia-open" if is_open else "cuda-drivers"
    return (
        PackageSet("NVIDIA's repository", (f"{name}-{branch}",)),
        PackageSet("NVIDIA's repository", (name,), first=f"nvidia-driver-pinning-{branch}"),
    )


def _debian(is_open: bool) -> PackageSet:
    """Debian's own archive, which carries one branch a release and keeps to it; nvidia-smi and MPS stand apart."""
    kernel = ("nvidia-open-kernel-dkms", "firmware-nvidia-gsp") if is_open else ("nvidia-kernel-dkms",)
    tools = ("nvidia-smi", "libcuda1", "libnvidia-ml1", "nvidia-cuda-mps")
    return PackageSet("Debian's archive", (*kernel, *tools), ("nvidia-persistenced",))


def _red_hat(distribution: Distribution, branch: str, is_open: bool) -> PackageSet:
    """NVIDIA's repository: by streams for RHEL 8 and 9 and Amazon 2023, plain for RHEL 10 and Fedora."""
    ours, other = ("kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms")
    if not is_open:
        ours, other = other, ours
    streams = distribution.has_streams
    return PackageSet(
        "NVIDIA's repository",
        ("nvidia-driver-cuda", ours),
        ("nvidia-persistenced",),
        stream=f"{branch}-{'open' if is_open else 'dkms'}" if streams else "",
        hold=not streams,
        rivals=(other, "nvidia-open") if not is_open else (other, "cuda-drivers"),
    )


def _suse(branch: str, is_open: bool, kernel: str) -> tuple[PackageSet, ...]:
    """SUSE's kernel module packages, by generation and kernel flavour; their names do not carry the branch."""
    generation = "G06" if int(branch) < 590 else "G07"
    flavour = kernel.rpartition("-")[2] if "-" in kernel else "default"
    utils = f"nvidia-compute-utils-{generation}"
    opened = (f"nvidia-open-driver-{generation}-signed-kmp", f"nvidia-open-driver-{generation}-signed-cuda-kmp")
    closed = f"nvidia-driver-{generation}-kmp"
    if not is_open:
        rivals = tuple(f"{name}-{flavour}" for name in opened)
        return (PackageSet("NVIDIA's repository", (f"{closed}-{flavour}", utils), hold=True, rivals=rivals),)
    rivals = (f"{closed}-{flavour}",)
    repositories = ("SUSE's or NVIDIA's repository", "NVIDIA's CUDA repository")
    return tuple(
        PackageSet(where, (f"{name}-{flavour}", utils), prebuilt=True, hold=True, rivals=rivals)
        for name, where in zip(opened, repositories)
    )


def astray(sets: tuple[PackageSet, ...], installed: Iterable[Package], version: str) -> tuple[Package, ...]:
    """The driver packages of the sets that are not installed at the driver's version, or not whole."""
    names = {name for one in sets for name in one.driver}
    mine = [package for package in installed if package.name in names]
    # Of a kernel's module several versions may be installed.
    right = {package.name for package in mine if upstream(package.version) == version and package.whole}
    return tuple(package for package in mine if package.name not in right)
