# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit gpu-sharing."""

from __future__ import annotations

from typing import Any

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.plan import Past, Unit
from ..core.unknown import Unknown, later
from ..look.services import state
from ..look.systemd import systemd, unit_file
from ..plan import gpu_sharing as planner
from ..plan.gpu_sharing_seen import Now
from ..plan.gpu_sharing_service import PIPE, SERVICE, WANTED_BY, is_ours, served
from ..plan.unit_names import GPU_SHARING as NAME

# Who has a GPU changes all the time. A plan that asks for it, where the look took it for one that does not, fails.
UNASKED: Any = Unknown(StepFailed("who uses the GPUs was not looked at, since nothing was to be changed: look again"))


def look(host: Host, settings: planner.Settings | None, past: Past) -> Now:
    """Our service; the GPUs and the daemon where MPS is wanted, or is to be ended; who uses them where that matters."""
    system = systemd(host)
    unit = unit_file(host, SERVICE, WANTED_BY)
    now = Now(system, unit)
    wanted = settings is not None and settings.mode == planner.MPS
    if not (wanted or unit.file or unit.enabled or host.exists(PIPE)):
        return now
    from ..look import mps  # a host that is done with MPS does not look at it

    if system.running and (unit.file or host.exists(PIPE)):
        unit = unit_file(host, SERVICE, WANTED_BY, ask=wanted and unit.file is not None)
        now = now._replace(unit=unit, state=state(host, SERVICE))
    if not wanted and now.is_down and not is_ours(unit.file):
        return now
    gpus = later(mps.gpus, host)
    now = now._replace(gpus=gpus, claims=UNASKED, apps=UNASKED)
    if wanted:
        daemon, said = mps.daemon(host, len(served(unit.file))) if now.runs else (None, "")
        now = now._replace(daemon=daemon, said=said, rivals=mps.rivals(host))
        now = now._replace(programs=later(mps.programs, host))
    now = now._replace(mig=later(mps.mig_modes, host, gpus))
    if planner.disturbs(settings, now, past):
        from ..look.clients import claimed
        from ..look.mps_clients import apps

        now = now._replace(claims=later(claimed, host), apps=later(apps, host, gpus, now.runs))
    return now


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
