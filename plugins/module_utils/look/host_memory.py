# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's memory as holds are admitted to it: what there is, and which huge pages are free."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.devices_seen import Memory, Pool
from ..plan.pages import G1, HOST, M2, NODES, Size
from .memory import node_ids
from .memory_shown import parse_total

MEMINFO = "/proc/meminfo"
HUGETLB = re.compile(r"^Hugetlb:\s+(\d+) kB", re.MULTILINE)


def memory(host: Host) -> Memory:
    """MemTotal, the whole huge page pool, and the free pages of the sizes that holds book.

    Raises StepFailed where the kernel does not say: then nobody knows what is left.
    """
    text = host.read(MEMINFO) or ""
    total = parse_total(text)
    if not total:
        raise StepFailed(f"{MEMINFO} shows no MemTotal: mount /proc")
    return Memory(1024 * total, 1024 * _hugetlb(host, text), tuple(_pool(host, size) for size in (M2, G1)))


def _hugetlb(host: Host, meminfo: str) -> int:
    """KiB of all huge pages; summed over the pools where the kernel is older than its line in meminfo (4.15)."""
    found = HUGETLB.search(meminfo)
    if found:
        return int(found.group(1))
    sizes = [(name, re.fullmatch(r"hugepages-(\d+)kB", name)) for name in host.names(HOST)]
    return sum(int(size.group(1)) * _count(host, f"{HOST}/{name}/nr_hugepages") for name, size in sizes if size)


def _pool(host: Host, size: Size) -> Pool:
    """The free pages of one size, host-wide without those that are reserved, and of each node."""
    folder = f"{HOST}/{size.folder}"
    free = _count(host, f"{folder}/free_hugepages") - _count(host, f"{folder}/resv_hugepages")
    nodes = {
        node: _count(host, f"{NODES}/node{node}/hugepages/{size.folder}/free_hugepages") for node in node_ids(host)
    }
    return Pool(size.kib, max(0, free), nodes)


def _count(host: Host, path: str) -> int:
    text = host.read(path)
    if text is None:
        return 0
    if not text.strip().isdecimal():
        raise StepFailed(f"{path} shows {text.strip()!r}, which is no number of pages: see the kernel's log")
    return int(text)
