# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu-sharing sees of a host: GPUs, the service and its daemon, and who uses the GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from .gpu import Gpu
from .gpu_sharing_service import Limits, Programs
from .smi import NAMES
from .systemd_asks import RUNS
from .systemd_seen import Systemd, UnitFile

if TYPE_CHECKING:
    from .gpu_users import App
    from .holds import Hold


QUERIED = (*NAMES, "memory.total", "persistence_mode", "compute_mode", "mig.mode.current")
EXCLUSIVE, DEFAULT = "Exclusive_Process", "Default"  # as it prints them
DOWN = ("", "inactive", "failed", "unknown")  # the states, as systemd prints them, of a service that has ended


class Card(NamedTuple):
    """What nvidia-smi prints of one GPU, as printed: MiB as "81559", modes as "Default" and "Enabled"."""

    memory: str
    persistence: str
    compute: str
    mig: str


class Seen(NamedTuple):
    """One GPU; `card` is a value that raises where this GPU alone did not answer (see core.unknown)."""

    gpu: Gpu
    card: Card


class Rival(NamedTuple):
    """An MPS daemon that is not ours: its process, the service that runs it ("" for none), and its directory."""

    pid: int
    service: str
    pipe: str


class Now(NamedTuple):
    """What the host shows. What follows `state` may be a value that raises when it is used (see core.unknown).

    `state` is the service's, as systemd says it, "" where it was not asked. `claims` are allocations that have GPUs,
    `apps` processes that compute: both are looked at only where the plan depends on them (gpu_sharing.disturbs).
    `daemon`: what the daemon answers; where it does not, `said` has why. `mig`: MIG modes by UUID as the unit before
    leaves them, where that is not seen yet; without an entry it is as `gpus` has it.
    """

    systemd: Systemd
    unit: UnitFile
    state: str = ""
    gpus: tuple[Seen, ...] = ()
    claims: tuple[Hold, ...] = ()
    apps: tuple[App, ...] = ()
    programs: Programs = Programs(None, None)
    daemon: Limits | None = None
    said: str = ""
    rivals: tuple[Rival, ...] = ()
    mig: Mapping[str, str] = {}

    @property
    def runs(self) -> bool:
        """Whether the service does."""
        return self.state in RUNS

    @property
    def is_down(self) -> bool:
        """Whether nothing of the service is left, or on its way."""
        return self.state in DOWN
