# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is made of, for reports: its CPUs, its NUMA nodes with their pages, its IOMMU."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ..core.host import Host
from ..plan.cpulist import parse
from ..plan.pages import HOST, NODES, Node, Size
from .memory import node_ids, pages
from .memory_shown import parse_total

CPUS = "/sys/devices/system/cpu"
IOMMUS, GROUPS = "/sys/class/iommu", "/sys/kernel/iommu_groups"


def cpu(host: Host) -> dict[str, Any]:
    """`count` of CPUs online, `isolated` as a cpulist ("" for none), `governors` in use with their counts of CPUs."""
    numbers = sorted(int(name[3:]) for name in host.names(CPUS) if re.fullmatch(r"cpu\d+", name))
    shown = (host.read(f"{CPUS}/cpu{number}/cpufreq/scaling_governor") for number in numbers)
    return {
        "count": len(parse(host.read(f"{CPUS}/online") or "")),
        "isolated": (host.read(f"{CPUS}/isolated") or "").strip(),
        "governors": dict(sorted(Counter(governor.strip() for governor in shown if governor).items())),
    }


def page_size(folder: str) -> Size | None:
    """The size that a directory such as "hugepages-2048kB" stands for, named "2Mi"; None for another name."""
    found = re.fullmatch(r"hugepages-(\d+)kB", folder)
    if not found:
        return None
    kib = int(found.group(1))
    name = next(
        (f"{kib >> bits}{unit}" for unit, bits in (("Gi", 20), ("Mi", 10)) if kib % (1 << bits) == 0), f"{kib}Ki"
    )
    return Size("", name, folder, kib)


def hugepages(host: Host, node: Node = None) -> dict[str, dict[str, int]]:
    """Pools by page size, "2Mi", each `total`, `free` and `surplus` in pages; of the host, or of one NUMA node."""
    pools = {}
    sizes = [size for size in map(page_size, host.names(HOST)) if size]
    for size in sorted(sizes, key=lambda size: size.kib):
        pool = pages(host, size, node)
        if pool is not None:
            pools[size.words] = {"total": pool.total, "free": pool.free, "surplus": pool.surplus}
    return pools


def numa(host: Host) -> list[dict[str, Any]]:
    """Each NUMA node's `id`, `cpus` as a cpulist, `memory` in bytes and `hugepages`."""
    return [
        {
            "id": node,
            "cpus": (host.read(f"{NODES}/node{node}/cpulist") or "").strip(),
            "memory": 1024 * parse_total(host.read(f"{NODES}/node{node}/meminfo") or ""),
            "hugepages": hugepages(host, node),
        }
        for node in node_ids(host)
    ]


def iommu(host: Host) -> dict[str, Any]:
    """Whether an IOMMU is in use: one is listed, and devices are in groups. `groups` is their number."""
    names, groups = host.names(IOMMUS), len(host.names(GROUPS))
    return {"enabled": bool(names) and groups > 0, "groups": groups, "names": list(names)}
