# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units' names, as a section has them, and their order. A unit's own files import its name as UNIT."""

from __future__ import annotations

KERNEL_MODULES = "kernel-modules"
SYSCTL = "sysctl"
HUGEPAGES = "hugepages"
CPU = "cpu"
IOMMU = "iommu"
NVIDIA_DRIVER = "nvidia-driver"
FABRIC_MANAGER = "fabric-manager"
GPU_SETTINGS = "gpu-settings"
MIG_LAYOUT = "mig-layout"
GPU_SHARING = "gpu-sharing"
CONTAINER_TOOLKIT = "container-toolkit"
K8S_JOIN = "k8s-join"

# A unit stands on those before it: modules bring the parameters that sysctl sets, memory and CPUs are there before
# what needs them, the driver comes before all that asks it, and a cluster gets a finished host.
ORDER = (
    KERNEL_MODULES,
    SYSCTL,
    HUGEPAGES,
    CPU,
    IOMMU,
    NVIDIA_DRIVER,
    FABRIC_MANAGER,
    GPU_SETTINGS,
    MIG_LAYOUT,
    GPU_SHARING,
    CONTAINER_TOOLKIT,
    K8S_JOIN,
)
