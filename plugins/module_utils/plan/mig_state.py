# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What mig-layout sees of the GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from . import smi
from .gpu import MODES, Gpu
from .systemd_seen import Systemd, UnitFile

if TYPE_CHECKING:
    from .mig import ComputeInstance, GpuInstance
    from .mig_offered import Offered, Placements

QUERIED = smi.LAYOUTS


class Shown(NamedTuple):
    """What one GPU shows: its MIG modes as printed, the branch of its driver, and its instances.

    `offered` and `placements` are looked at where the instances are not the layout by name. Each may be a value that
    raises why it is not known (see core.unknown).
    """

    current: str
    pending: str = ""
    branch: int = 0
    gis: tuple[GpuInstance, ...] = ()
    cis: tuple[ComputeInstance, ...] = ()
    offered: tuple[Offered, ...] = ()
    placements: tuple[Placements, ...] = ()

    @property
    def on(self) -> bool:
        """Whether MIG mode is on; of a GPU that shows a mode."""
        return MODES[self.current]

    def parts_of(self, gi: GpuInstance) -> tuple[ComputeInstance, ...]:
        """The compute instances of a GPU instance."""
        return tuple(ci for ci in self.cis if ci.gi == gi.id)


class Seen(NamedTuple):
    """One GPU; `shown` is a value that raises where this GPU alone does not answer."""

    gpu: Gpu
    shown: Shown


class InTheWay(NamedTuple):
    """What may keep a GPU from being reset, looked at only where a mode waits for a reset.

    `drm`: the refcnt of nvidia_drm, None where it is not loaded. `services`: those that run and hold GPUs open.
    `programs`: the names of what does; a GPU that others have open is busy, and not reset.
    """

    drm: int | None = None
    services: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


class Now(NamedTuple):
    """The host's GPUs; why each is busy, by UUID, where one has to change; our boot service and its program's path."""

    gpus: tuple[Seen, ...] = ()
    busy: Mapping[str, tuple[str, ...]] = {}
    in_the_way: InTheWay = InTheWay()
    service: UnitFile = UnitFile("", "")
    systemd: Systemd = Systemd(False)
    program: str = ""


def label(gpu: Gpu) -> str:
    """The GPU in a sentence."""
    return f"GPU {gpu.index} ({gpu.name}, {gpu.uuid})"
