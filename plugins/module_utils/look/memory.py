# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory, its NUMA nodes, and the pools of huge pages."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.hugepages import TRANSPARENT, Memory, chosen
from ..plan.pages import NODES, Node, Pages, Pool, Size, directory

TOTAL = re.compile(r"^(?:Node \d+ )?MemTotal:\s+(\d+) kB", re.MULTILINE)


def parse_total(text: str) -> int:
    """MemTotal in KiB, of /proc/meminfo or a node's meminfo; 0 where it is not shown."""
    found = TOTAL.search(text)
    return int(found.group(1)) if found else 0


def node_ids(host: Host) -> tuple[int, ...]:
    """The NUMA nodes that the kernel shows, in order."""
    found = (re.fullmatch(r"node(\d+)", name) for name in host.names(NODES))
    return tuple(sorted(int(name.group(1)) for name in found if name))


def memory(host: Host) -> Memory:
    """The host's memory and its nodes; a node that does not say what it has counts as one with memory and CPUs."""
    totals: dict[int, int] = {}
    with_cpus = []
    for node in node_ids(host):
        meminfo = host.read(f"{NODES}/node{node}/meminfo")
        if meminfo is not None and parse_total(meminfo) == 0:
            continue
        totals[node] = parse_total(meminfo or "")
        cpus = host.read(f"{NODES}/node{node}/cpulist")
        if cpus is None or cpus.strip():
            with_cpus.append(node)
    known = {node: total for node, total in totals.items() if total}
    return Memory(parse_total(host.read("/proc/meminfo") or ""), tuple(with_cpus), tuple(totals), known)


def pages(host: Host, size: Size, node: Node) -> Pages | None:
    """One pool; None where the kernel shows none."""
    folder = directory(size, node)
    total = _number(host, f"{folder}/nr_hugepages")
    if total is None:
        return None
    free, surplus = _number(host, f"{folder}/free_hugepages"), _number(host, f"{folder}/surplus_hugepages")
    return Pages(total, total if free is None else free, surplus or 0)


def pool(host: Host, size: Size, nodes: tuple[int, ...]) -> Pool:
    """The pools of one size: the host's, and those of the nodes."""
    shown = {node: found for node in nodes for found in (pages(host, size, node),) if found is not None}
    overcommit = _number(host, f"{directory(size, None)}/nr_overcommit_hugepages") or 0
    return Pool(pages(host, size, None), shown, overcommit)


def _number(host: Host, path: str) -> int | None:
    text = host.read(path)
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise StepFailed(f"{path} shows {text.strip()!r}, which is no number of pages: see the kernel's log")
    return int(text)


def transparent(host: Host) -> str | None:
    """The policy of transparent huge pages; None where the kernel has none."""
    return chosen(host.read(TRANSPARENT))
