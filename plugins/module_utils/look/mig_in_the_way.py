# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses GPUs whose MIG is to change, and what may keep one from being reset. Imported only where one has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.host import Host
from ..core.unknown import is_known, later
from ..plan.gpu_users import is_attendant
from ..plan.mig import OFF, Layout
from ..plan.mig_mode import DRM, SERVICES, may_wait
from ..plan.mig_state import InTheWay, Seen
from ..plan.smi import SMI
from .clients import busy, device_holders
from .kernel import refcnt
from .services import is_active


def who_uses(
    host: Host, gpus: tuple[Seen, ...], changing: Sequence[tuple[Seen, Layout | None]]
) -> tuple[Any, InTheWay]:
    """Why GPUs are busy, by UUID, known or not; and what is in the way where a mode of those that change may wait."""
    users = later(busy, host, tuple(seen.gpu for seen in gpus))
    waits = any(later(_may_wait, seen, layout) is True for seen, layout in changing)
    return users, in_the_way(host) if waits else InTheWay()


def _may_wait(seen: Seen, layout: Layout | None) -> bool:
    return layout is not None and is_known(seen.shown) and may_wait(seen.gpu, seen.shown, layout.kind != OFF)


def in_the_way(host: Host) -> InTheWay:
    """What may keep a GPU from being reset."""
    holders = device_holders(host)
    programs = {holder.program for node in holders.values() for holder in node if is_attendant(holder.program)} - {SMI}
    return InTheWay(
        drm=refcnt(host, DRM),
        services=tuple(name for name in SERVICES if is_active(host, name)),
        programs=tuple(sorted(programs)),
    )
