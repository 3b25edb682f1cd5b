# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may keep a GPU from being reset, looked at only where a MIG mode waits for that."""

from __future__ import annotations

from ..core.host import Host
from ..plan.gpu_users import is_attendant
from ..plan.mig_mode import DRM, SERVICES
from ..plan.mig_state import InTheWay
from ..plan.smi import SMI
from .clients import device_holders
from .kernel import refcnt
from .services import is_active


def in_the_way(host: Host) -> InTheWay:
    """What may keep a GPU from being reset."""
    holders = device_holders(host)
    programs = {holder.program for node in holders.values() for holder in node if is_attendant(holder.program)} - {SMI}
    return InTheWay(
        drm=refcnt(host, DRM),
        services=tuple(name for name in SERVICES if is_active(host, name)),
        programs=tuple(sorted(programs)),
    )
