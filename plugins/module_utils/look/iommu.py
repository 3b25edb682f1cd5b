# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPU's vendor, and whether the kernel has IOMMU groups: sights, since the texts and lists around them move."""

from __future__ import annotations

from ..core.host import Host


def vendor(host: Host) -> str:
    """The first vendor_id of /proc/cpuinfo, which also shows every CPU's frequency; "" when no CPU has one."""
    for line in (host.read("/proc/cpuinfo") or "").splitlines():
        name, _colon, value = line.partition(":")
        if name.rstrip() == "vendor_id" and value.strip():
            return value.split()[0]
    return ""


def has_groups(host: Host) -> bool:
    """Whether there is a group: each device that comes or goes makes or ends one."""
    return bool(host.names("/sys/kernel/iommu_groups"))
