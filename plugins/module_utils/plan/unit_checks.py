# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every unit's table of fields and its check, for who judges settings where no unit is applied: on the controller.

It imports the plans of all units, which a host never does at once: there units.catalog finds them, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field
from . import (
    container_toolkit,
    cpu,
    fabric_manager,
    gpu_settings,
    gpu_sharing,
    hugepages,
    iommu,
    k8s_join,
    mig_layout,
    module_settings,
    nvidia_driver,
    sysctl,
)
from . import unit_names as names
from .section import unnamed


class Checked(NamedTuple):
    """What a unit's settings are held to."""

    fields: tuple[Field, ...]
    check: Callable[[dict[str, Any]], Any]


CHECKED: dict[str, Checked] = {
    names.KERNEL_MODULES: Checked(module_settings.FIELDS, module_settings.check),
    names.SYSCTL: Checked(sysctl.FIELDS, sysctl.check),
    names.HUGEPAGES: Checked(hugepages.FIELDS, hugepages.check),
    names.CPU: Checked(cpu.FIELDS, cpu.check),
    names.IOMMU: Checked(iommu.FIELDS, iommu.check),
    names.NVIDIA_DRIVER: Checked(nvidia_driver.FIELDS, nvidia_driver.check),
    names.FABRIC_MANAGER: Checked(fabric_manager.FIELDS, fabric_manager.check),
    names.GPU_SETTINGS: Checked(gpu_settings.FIELDS, gpu_settings.check),
    names.MIG_LAYOUT: Checked(mig_layout.FIELDS, mig_layout.check),
    names.GPU_SHARING: Checked(gpu_sharing.FIELDS, gpu_sharing.check),
    names.CONTAINER_TOOLKIT: Checked(container_toolkit.FIELDS, container_toolkit.check),
    names.K8S_JOIN: Checked(k8s_join.FIELDS, k8s_join.check),
}


def refusal(unit: str, settings: Mapping[str, Any]) -> str:
    """Why a host refuses the settings of a unit that there is, without the unit's name; "" where it takes them."""
    try:
        CHECKED[unit].check(dict(settings))
    except Refused as fault:
        return unnamed(unit, fault.message)
    return ""
