# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of simulated machines with GPUs, bare and with a driver."""

from __future__ import annotations

from .machine import Machine
from .profiles import machine

CONTAINERD, PODMAN = ("containerd", "1.7.27"), ("podman", "4.9.3")
UBUNTU_DRIVER = (
    "nvidia-headless-580-server-open",
    "nvidia-utils-580-server",
    "nvidia-compute-utils-580-server",
)
ROCKY_DRIVER = ("stream:580-open", "nvidia-driver-cuda", "kmod-nvidia-open-dkms")
TOOLKIT = ("nvidia-container-toolkit",)

PROFILES: dict[str, Machine] = {
    # No driver yet: a board with NVSwitches on Ubuntu, and one of the Red Hat family.
    "h100-bare": machine("ubuntu", efi=True, gpus=("H100-80GB",) * 2, nvswitch=4, runtimes=(CONTAINERD, PODMAN)),
    "h100-el9": machine("rocky", efi=True, gpus=("H100-80GB",) * 2, runtimes=(PODMAN,)),
    # With the driver, and nothing set up.
    "h100": machine(
        "ubuntu", efi=True, gpus=("H100-80GB",) * 2, packages=(*UBUNTU_DRIVER, *TOOLKIT), runtimes=(CONTAINERD, PODMAN)
    ),
    "a100": machine("ubuntu", efi=True, gpus=("A100-40GB",) * 2, packages=(*UBUNTU_DRIVER, *TOOLKIT)),
    "rtx": machine("ubuntu", efi=True, gpus=("L40S",) * 2, packages=(*UBUNTU_DRIVER, *TOOLKIT), runtimes=(PODMAN,)),
    "nvswitch": machine("ubuntu", efi=True, gpus=("H100-80GB",) * 4, nvswitch=4, packages=UBUNTU_DRIVER),
}
