# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit gpu-settings."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..plan import gpu_settings as planner
from ..plan.unit_names import GPU_SETTINGS as NAME


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """The GPUs, when something is asked of them: nothing is run otherwise."""
    if settings is None or settings.ask_nothing:
        return planner.Now()
    from ..look.gpu_settings import gpus

    return planner.Now(gpus(host))


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
