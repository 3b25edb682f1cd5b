# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's package names for the Red Hat family and for SUSE."""

from __future__ import annotations

from .distribution import Distribution
from .nvidia_names import PackageSet


def red_hat(distribution: Distribution, branch: str, is_open: bool) -> PackageSet:
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


def suse(branch: str, is_open: bool, kernel: str) -> tuple[PackageSet, ...]:
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
