# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's package names for Debian and Ubuntu."""

from __future__ import annotations

from .distribution import Distribution
from .nvidia_names import PackageSet


def sets(distribution: Distribution, branch: str, is_open: bool, kernel: str, signed: bool) -> tuple[PackageSet, ...]:
    """The sets of a branch and flavour in order of preference (see driver_sets)."""
    if distribution.is_ubuntu:
        return (*_ubuntu(branch, is_open, kernel, signed), *_nvidia_metas(branch, is_open))
    return (*_nvidia_debian(branch, is_open), *_nvidia_metas(branch, is_open), _debian(is_open))


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
