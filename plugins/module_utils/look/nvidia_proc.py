# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the loaded driver shows of its GPUs: a directory each, named by its PCI address, a dead one's among them."""

from __future__ import annotations

import re

from ..core.host import Host
from ..plan.pci import normal_pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

DRIVER = "/proc/driver/nvidia"
GPUS = f"{DRIVER}/gpus"
LINE = re.compile(r"^(Model|GPU UUID|Device Minor|GPU Excluded):[ \t]*(\S.*?)\s*$", re.MULTILINE)


class Taken(NamedTuple):
    """A GPU that the driver has taken: its PCI address as nvidia-smi prints it, and what the driver says of it.

    "" is what it does not say: the UUID of one that it could not start. `minor` is the number of its device node.
    """

    pci: str
    uuid: str = ""
    model: str = ""
    minor: int | None = None


def taken(host: Host) -> tuple[Taken, ...]:
    """Every GPU of the driver, by its address, in which order nvidia-smi numbers them."""
    found = []
    for name in host.names(GPUS):
        pci = normal_pci(name)
        if pci:
            said = dict(LINE.findall(host.read(f"{GPUS}/{name}/information") or ""))
            if said.get("GPU Excluded") == "Yes":  # by the module's option: it is not to be used
                continue
            uuid, minor = said.get("GPU UUID", ""), said.get("Device Minor", "")
            found.append(
                Taken(
                    pci,
                    "" if "?" in uuid else uuid,  # "GPU-????????-..."
                    said.get("Model", ""),
                    int(minor) if minor.isdecimal() else None,
                )
            )
    return tuple(sorted(found, key=lambda gpu: gpu.pci))
