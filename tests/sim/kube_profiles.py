# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of simulated machines that become workers of a Kubernetes cluster."""

from __future__ import annotations

from .gpu_profiles import CONTAINERD, TOOLKIT, UBUNTU_DRIVER
from .machine import Machine
from .profiles import machine

KUBERNETES = ("kubeadm", "kubelet", "kubectl")

PROFILES: dict[str, Machine] = {
    # Nothing of Kubernetes yet, and no container runtime; of the Red Hat family, one that has Docker's repository.
    "worker-bare": machine("ubuntu", efi=True, packaged=True),
    "worker-el9": machine("rocky", efi=True, packaged=True),
    # All packages, in no cluster.
    "worker": machine("ubuntu", efi=True, packaged=True, packages=("containerd", *KUBERNETES)),
    # The same with two GPUs and their driver.
    "worker-h100": machine(
        "ubuntu",
        efi=True,
        gpus=("H100-80GB",) * 2,
        packages=(*UBUNTU_DRIVER, *TOOLKIT, *KUBERNETES),
        runtimes=(CONTAINERD,),
    ),
}
