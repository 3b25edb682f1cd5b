# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huge pages of a simulated kernel: pools, how they grow and shrink, and what /proc says of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from .machine import Machine, load, put, read, there

PAGE_KB = {"2048kB": 2048, "1048576kB": 1048576}
POOLS = "/sys/kernel/mm/hugepages"
NODES = "/sys/devices/system/node"
BASE_MB = 512  # what the running system keeps of each node's memory


class Pool(NamedTuple):
    """A pool as its files show it: the total has the surplus in it, pages in use beyond what was asked for."""

    total: int
    free: int
    surplus: int

    @property
    def asked(self) -> int:
        """What the pool was set to, as far as it was had."""
        return self.total - self.surplus


def pool_of(root: str, node: int | None, size: str) -> str:
    """The directory of a page pool: a node's, or the host's, which is also that of a kernel without NUMA."""
    if node is None or not there(root, NODES):
        return f"{POOLS}/hugepages-{size}"
    return f"{NODES}/node{node}/hugepages/hugepages-{size}"


def default_size(root: str) -> str:
    """The size that /proc/sys/vm/nr_hugepages counts."""
    found = re.findall(r"\bdefault_hugepagesz=(\S+)", read(root, "/proc/cmdline") or "")
    return "1048576kB" if found and found[-1].upper() in ("1G", "1024M", "1048576K") else "2048kB"


def pool(root: str, node: int | None, size: str) -> Pool:
    """What a pool's files show."""
    where = pool_of(root, node, size)
    return Pool(*(int((read(root, f"{where}/{what}_hugepages") or "0").strip()) for what in ("nr", "free", "surplus")))


def show(root: str, node: int | None, size: str, now: Pool) -> None:
    """Write a pool's files."""
    where = pool_of(root, node, size)
    for what, value in zip(("nr", "free", "surplus"), now):
        put(root, f"{where}/{what}_hugepages", f"{value}\n", 0o644 if what == "nr" else 0o444)


def resize(root: str, size: str, want: int, node: int | None) -> None:
    """Ask for so many pages on a node, or on the host, which takes them in turn from one node after the other.

    The pools end with what could be had: the write succeeds whatever came of it, as in the kernel.
    """
    machine = load(root)
    where = list(range(len(machine.nodes))) if node is None else [node]
    pools = {one: pool(root, one, size) for one in where}
    room = {one: _room(root, machine, one, size) + pools[one].surplus for one in where}
    change = dict.fromkeys(where, 0)
    missing = want - sum(now.asked for now in pools.values())
    while missing > 0 and any(change[one] < room[one] for one in where):
        for one in where:
            if missing > 0 and change[one] < room[one]:
                change[one] += 1
                missing -= 1
    in_use = {one: now.asked - now.free for one, now in pools.items()}
    for least in (in_use, dict.fromkeys(where, 0)):  # first what is free, on whatever node, then what is in use
        while missing < 0 and any(pools[one].asked + change[one] > least[one] for one in where):
            for one in where:
                if missing < 0 and pools[one].asked + change[one] > least[one]:
                    change[one] -= 1
                    missing += 1
    for one in where:
        if change[one]:
            show(root, one, size, _changed(pools[one], change[one]))
    totals(root)


def _changed(now: Pool, pages: int) -> Pool:
    """A pool after it grew or shrank; pages in use stay, as surplus."""
    asked, used = now.asked + pages, now.total - now.free
    total = max(asked, used)
    return Pool(total, total - used, total - asked)


def _room(root: str, machine: Machine, node: int, size: str) -> int:
    """How many more pages of the size the node's memory can give now."""
    taken = sum(pool(root, node, each).total * PAGE_KB[each] for each in PAGE_KB) // 1024
    fits = max(0, (machine.nodes[node].memory_mb - BASE_MB - taken) * 1024 // PAGE_KB[size])
    if size == "1048576kB":
        fits = min(fits, max(0, machine.nodes[node].runtime_1g - pool(root, node, size).total))
    return fits


def totals(root: str) -> None:
    """The host's pools as the sums of the nodes', and what /proc says of them."""
    machine = load(root)
    for size in PAGE_KB:
        if there(root, pool_of(root, None, size)):
            each = [pool(root, one, size) for one in range(len(machine.nodes))]
            show(root, None, size, Pool(*(sum(numbers) for numbers in zip(*each))))
    if there(root, "/proc/sys/vm/nr_hugepages"):
        put(root, "/proc/sys/vm/nr_hugepages", f"{pool(root, None, default_size(root)).total}\n")
    put(root, "/proc/meminfo", meminfo(root, machine))


def meminfo(root: str, machine: Machine) -> str:
    """The text of /proc/meminfo."""
    total = sum(node.memory_mb for node in machine.nodes) * 1024
    huge = sum(pool(root, None, size).total * kb for size, kb in PAGE_KB.items())
    size = default_size(root)
    free = max(0, total - huge - BASE_MB * 1024 * len(machine.nodes))
    swap = sum(int(line.split()[2]) for line in (read(root, "/proc/swaps") or "").splitlines()[1:])
    shown = pool(root, None, size)
    lines = {
        "MemTotal": f"{total} kB",
        "MemFree": f"{free} kB",
        "MemAvailable": f"{free} kB",
        "SwapTotal": f"{swap} kB",
        "SwapFree": f"{swap} kB",
        "HugePages_Total": str(shown.total),
        "HugePages_Free": str(shown.free),
        "HugePages_Rsvd": "0",
        "HugePages_Surp": str(shown.surplus),
        "Hugepagesize": f"{PAGE_KB[size]} kB",
        "Hugetlb": f"{huge} kB",
    }
    return "".join(f"{name + ':':<16}{value:>11}\n" for name, value in lines.items())


def use(root: str, node: int, size: str, pages: int) -> None:
    """Let something use so many of a node's free pages."""
    now = pool(root, node, size)
    show(root, node, size, now._replace(free=max(0, now.free - pages)))
    totals(root)
