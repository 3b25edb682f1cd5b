# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MIG devices of each GPU, as nvidia-smi lists them."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.gpu_listed import Listed, MigDevice
from ..plan.smi import LIST
from .smi import NO_GPU, answered

LISTED = re.compile(r"GPU (\d+): (.+) \(UUID: (GPU-[^\s)]+)\)")
MIG_DEVICE = re.compile(r" +MIG (\S+) +Device +(\d+): \(UUID: (MIG-[^\s)]+)\)")


def listing(host: Host) -> str:
    """What `nvidia-smi -L` prints: every GPU and every MIG device; "" where there is none."""
    return answered(host, *LIST[1:])


def parse_list(text: str) -> tuple[Listed, ...]:
    """The GPUs and MIG devices of `nvidia-smi -L`; raises StepFailed naming a line that is neither, or a gap."""
    listed: list[Listed] = []
    for line in text.splitlines():
        gpu, device = LISTED.fullmatch(line), MIG_DEVICE.fullmatch(line)
        if gpu and int(gpu.group(1)) == len(listed):
            listed.append(Listed(len(listed), gpu.group(2), gpu.group(3)))
        elif device and listed and int(device.group(2)) == len(listed[-1].devices):
            mine = MigDevice(device.group(1), int(device.group(2)), device.group(3))
            listed[-1] = listed[-1]._replace(devices=(*listed[-1].devices, mine))
        elif line.strip() and not NO_GPU.fullmatch(line.strip()):
            from .smi_faults import quoted

            raise StepFailed(f"nvidia-smi -L prints {quoted(line)}, which is no GPU or MIG device in its place")
    return tuple(listed)
