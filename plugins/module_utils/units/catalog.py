# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units that this version has, each imported when it is named."""

from __future__ import annotations

from ..core.errors import Refused
from ..plan.unit_names import ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from ..core.plan import Unit


def unit(name: str) -> Unit:
    """The unit of that wire name; raises Refused for a name that this version has no unit for."""
    if name in SHIPPED:
        return SHIPPED[name]()
    if name in ORDER:
        raise Refused(f"this version has no unit {name}: take it out of the section, or install a version that has it")
    raise Refused(f"there is no unit {name!r}: correct the name to one of {', '.join(SHIPPED)}")


def _kernel_modules() -> Unit:
    from ..units.kernel_modules import UNIT

    return UNIT


def _sysctl() -> Unit:
    from ..units.sysctl import UNIT

    return UNIT


def _hugepages() -> Unit:
    from ..units.hugepages import UNIT

    return UNIT


def _cpu() -> Unit:
    from ..units.cpu import UNIT

    return UNIT


def _iommu() -> Unit:
    from ..units.iommu import UNIT

    return UNIT


def _nvidia_driver() -> Unit:
    from ..units.nvidia_driver import UNIT

    return UNIT


def _fabric_manager() -> Unit:
    from ..units.fabric_manager import UNIT

    return UNIT


def _gpu_settings() -> Unit:
    from ..units.gpu_settings import UNIT

    return UNIT


def _mig_layout() -> Unit:
    from ..units.mig_layout import UNIT

    return UNIT


def _gpu_sharing() -> Unit:
    from ..units.gpu_sharing import UNIT

    return UNIT


def _container_toolkit() -> Unit:
    from ..units.container_toolkit import UNIT

    return UNIT


def _k8s_join() -> Unit:
    from ..units.k8s_join import UNIT

    return UNIT


SHIPPED: dict[str, Callable[[], Unit]] = {
    "kernel-modules": _kernel_modules,
    "sysctl": _sysctl,
    "hugepages": _hugepages,
    "cpu": _cpu,
    "iommu": _iommu,
    "nvidia-driver": _nvidia_driver,
    "fabric-manager": _fabric_manager,
    "gpu-settings": _gpu_settings,
    "mig-layout": _mig_layout,
    "gpu-sharing": _gpu_sharing,
    "container-toolkit": _container_toolkit,
    "k8s-join": _k8s_join,
}
