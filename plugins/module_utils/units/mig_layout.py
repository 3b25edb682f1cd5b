# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit mig-layout."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Plan, Unit
from ..plan import mig_layout as planner
from ..plan.mig_state import Now
from ..plan.unit_names import MIG_LAYOUT as NAME


def look(host: Host, settings: planner.Settings | None, _past: Past) -> Now:
    """The GPUs; nothing of them when the unit leaves, since nothing is undone."""
    if settings is None:
        return Now()
    from ..look.mig_layout import now

    return now(host, settings)


def gather(host: Host) -> Plan:
    """The layouts that the GPUs have, in the form of the settings."""
    from ..look.mig_gathered import gathered

    return gathered(host)


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent, gather)
