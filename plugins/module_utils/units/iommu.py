# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit iommu."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..look import iommu
from ..look.boot import boot, running_line
from ..plan import iommu as planner
from ..plan.unit_names import IOMMU as NAME


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """The CPU's vendor, the kernel's IOMMUs and groups, the boot loader."""
    return planner.Now(
        vendor=host.sight(iommu.vendor) if settings else "",
        units=host.names("/sys/class/iommu"),
        groups=host.sight(iommu.has_groups),
        running=running_line(host),
        boot=boot(host, NAME),
    )


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
