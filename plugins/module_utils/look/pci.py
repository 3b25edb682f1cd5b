# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs on the PCI bus, seen without any driver."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.gpu_chips import PciGpu
from . import pci_bus


def gpus(host: Host) -> tuple[PciGpu, ...]:
    """NVIDIA's display and 3D controllers, by address. Raises StepFailed for a device id that is none."""
    return tuple(
        PciGpu(address, _number(device, f"{pci_bus.BUS}/{address}/device"), driver)
        for address, device, driver in host.sight(pci_bus.gpus)
    )


def _number(text: str, path: str) -> int:
    """A device id, "0x2330"; raises StepFailed for a text that is none."""
    if not re.fullmatch(r"0x[0-9a-f]{1,8}", text.strip(), re.IGNORECASE):
        raise StepFailed(f"{path} reads {text[:40]!r}, which is no device id: see the kernel's log for the PCI bus")
    return int(text, 16)
