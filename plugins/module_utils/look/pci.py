# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs on the PCI bus, seen without any driver."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.gpu_chips import PciGpu

BUS = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
DISPLAY = "0x03"  # the base class of display and 3D controllers; NVSwitches are bridges, a GPU's sound is multimedia


def gpus(host: Host) -> tuple[PciGpu, ...]:
    """NVIDIA's display and 3D controllers, by address."""
    found = []
    for address in host.names(BUS):
        folder = f"{BUS}/{address}"
        if (host.read(f"{folder}/vendor") or "").strip() != NVIDIA:
            continue
        if not (host.read(f"{folder}/class") or "").startswith(DISPLAY):
            continue
        driver = (host.link(f"{folder}/driver") or "").rpartition("/")[2]
        device = host.read(f"{folder}/device")
        if device is not None:  # else it went while it was looked at
            found.append(PciGpu(address, _number(device, f"{folder}/device"), driver))
    return tuple(found)


def _number(text: str, path: str) -> int:
    """A device id, "0x2330"; raises StepFailed for a text that is none."""
    if not re.fullmatch(r"0x[0-9a-f]{1,8}", text.strip(), re.IGNORECASE):
        raise StepFailed(f"{path} reads {text[:40]!r}, which is no device id: see the kernel's log for the PCI bus")
    return int(text, 16)
