# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit iommu."""

from __future__ import annotations

import re

from ..core.host import Host
from ..core.plan import Past, Unit
from ..look.boot import boot, running_line
from ..plan import iommu as planner
from ..plan.unit_names import IOMMU as NAME


def vendor(cpuinfo: str) -> str:
    """The first vendor_id of /proc/cpuinfo; "" when no CPU has one."""
    found = re.search(r"^vendor_id\s*:\s*(\S+)", cpuinfo, re.MULTILINE)
    return found.group(1) if found else ""


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """The CPU's vendor, the kernel's IOMMUs and groups, the boot loader."""
    return planner.Now(
        vendor=vendor(host.read("/proc/cpuinfo") or "") if settings else "",
        units=host.names("/sys/class/iommu"),
        groups=bool(host.names("/sys/kernel/iommu_groups")),
        running=running_line(host),
        boot=boot(host, NAME),
    )


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
