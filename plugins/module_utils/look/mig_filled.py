# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU instances that one compute instance fills, told by `nvidia-smi -L`: what names their devices asks that anyway.

A layout of such devices alone is seen without `nvidia-smi mig -lci`, which starts nvidia-smi once more.
"""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.unknown import later
from ..plan.gpu import Gpu
from ..plan.gpu_listed import Listed
from ..plan.mig import ComputeInstance, GpuInstance, known
from .smi_lists import listing, parse_list


class Devices:
    """The MIG devices of all GPUs, asked for once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._listed: tuple[Listed, ...] | None = None

    def filling(self, gpu: Gpu, gis: tuple[GpuInstance, ...]) -> tuple[ComputeInstance, ...]:
        """The compute instances of a GPU whose GPU instances have one each that fills them, as its devices tell.

        Raises StepFailed where they do not tell that: `mig -lci` then has to.
        """
        if not gis:
            return ()
        if self._listed is None:
            self._listed = later(_list, self._host)
        names = [device.profile for one in self._listed if one.uuid == gpu.uuid for device in one.devices]
        filled = all(known(name).compute == known(name).slices for name in names)
        if not filled or sorted(names) != sorted(gi.profile_name for gi in gis):
            raise StepFailed(f"nvidia-smi -L does not tell of the compute instances of GPU {gpu.index}")
        return tuple(ComputeInstance(gi.id, 0, gi.profile_name, gi.profile_id, 0, gi.size) for gi in gis)


def _list(host: Host) -> tuple[Listed, ...]:
    return parse_list(listing(host))
