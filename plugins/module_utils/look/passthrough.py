# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root remembers of GPUs in virtual machines, and which GPUs are bound to vfio-pci now."""

from __future__ import annotations

from ..core.host import Host
from ..plan.devices_seen import Passed
from ..plan.passthrough import RECORD, parse_record
from .pci import gpus


def passed(host: Host) -> tuple[Passed, ...]:
    """Root's record; empty when there is none. Raises StepFailed for one that cannot be read or is damaged."""
    text = host.read(RECORD)
    return () if text is None else parse_record(RECORD, text)


def on_vfio(host: Host) -> frozenset[str]:
    """The PCI addresses of NVIDIA's GPUs that are bound to vfio-pci, or to a variant of it: "nvgrace-gpu-vfio-pci"."""
    return frozenset(gpu.address for gpu in gpus(host) if gpu.driver.endswith("vfio-pci"))
