# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory, its NUMA nodes, and the pools of huge pages."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.host import Host
from ..plan.hugepages import TRANSPARENT, Memory, chosen
from ..plan.pages import NODES, Node, Pages, Pool, Size, directory
from . import memory_shown


def node_ids(host: Host) -> tuple[int, ...]:
    """The NUMA nodes that the kernel shows, in order."""
    found = (re.fullmatch(r"node(\d+)", name) for name in host.names(NODES))
    return tuple(sorted(int(name.group(1)) for name in found if name))


def memory(host: Host) -> Memory:
    """The host's memory and its nodes; a node that does not say what it has counts as one with memory and CPUs."""
    totals: dict[int, int] = {}
    with_cpus = []
    for node in node_ids(host):
        total = host.sight(memory_shown.total, f"{NODES}/node{node}/meminfo")
        if total == 0:
            continue
        totals[node] = total or 0
        cpus = host.read(f"{NODES}/node{node}/cpulist")
        if cpus is None or cpus.strip():
            with_cpus.append(node)
    known = {node: total for node, total in totals.items() if total}
    return Memory(host.sight(memory_shown.total, "/proc/meminfo") or 0, tuple(with_cpus), tuple(totals), known)


def pages(host: Host, size: Size, node: Node, wanted: int = -1, may_exceed: bool = False) -> Pages | None:
    """One pool; None where the kernel shows none. Who uses pages is not told of one that is as `wanted`."""
    shown = host.sight(memory_shown.pool, directory(size, node), wanted, may_exceed)
    return None if shown is None else Pages(*shown)


def pool(host: Host, size: Size, wanted: Mapping[Node, int]) -> Pool:
    """The pools of one size: the host's, and those of the nodes that `wanted` has, by what is wanted there."""
    overcommit = memory_shown.number(host, f"{directory(size, None)}/nr_overcommit_hugepages") or 0
    exceeds = overcommit > 0
    nodes = {node: count for node, count in wanted.items() if node is not None}
    shown = {node: pages(host, size, node, count, exceeds) for node, count in nodes.items()}
    whole = pages(host, size, None, sum(wanted.values()) if wanted else -1, exceeds)
    return Pool(whole, {node: found for node, found in shown.items() if found is not None}, overcommit)


def transparent(host: Host) -> str | None:
    """The policy of transparent huge pages; None where the kernel has none."""
    return chosen(host.read(TRANSPARENT))
