# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this host still has the memory and the huge pages that a new hold books, beside what others were promised.

What was promised counts, not what is in use. Normal memory is MemTotal less the whole huge page pool and 1 GiB for the
host; from it go the virtual machines, each with memory/32 + 256 MiB for its process, and what the holds booked. Huge
pages are those that are free, less what the holds may still take.
"""

from __future__ import annotations

from collections.abc import Mapping

from .assignment import Instance, Limits
from .cpulist import parse
from .devices_seen import Domain, Held, Memory, Pool, Slice

MIB = 1024 * 1024
HEADROOM = 1024 * MIB  # bytes left to the host itself
SIZES = (("2MB", 2048), ("1GB", 1048576))  # the kernel's name in a cgroup's files, KiB


class Ledger:
    """What is left on this host, hold by hold: each that is admitted counts for those after it.

    `memory` is None where it could not be read: then everything is admitted, and the caller says so. `held` are the
    holds that are there; a Kubernetes hold counts as any other. `domains` run here, and `instances` are to;
    one that is among the domains by libvirt's name or UUID counts once. Nothing is looked at before the first hold
    that books memory or huge pages.
    """

    def __init__(
        self,
        memory: Memory | None,
        held: Mapping[str, Held],
        slices: Mapping[str, Slice],
        domains: tuple[Domain, ...],
        instances: tuple[Instance, ...],
    ) -> None:
        self._memory = memory
        self._held = held
        self._slices = slices
        self._domains = domains
        self._instances = instances
        self._left: int | None = None  # bytes; None: nothing needed it yet
        self._pages: dict[int, _Pages] = {}

    def admit(self, limits: Limits | None) -> str:
        """Book the limits and return "", or say what they need that is not left; CPUs are not counted."""
        if limits is None or not (limits.memory_bytes or any(_pages_of(limits).values())):
            return ""
        if self._memory is None:
            return ""
        if self._left is None:
            self._open(self._memory)
        need, left = limits.memory_bytes or 0, self._left or 0
        if need > left:
            return (
                f"ResourcesExhausted: {-(-need // MIB)} MiB of memory needed, "
                f"{max(0, left) // MIB} MiB left on this host"
            )
        nodes = _nodes(limits)
        for kib, count in _pages_of(limits).items():
            free = self._pages[kib].left(nodes)
            if count > free:
                return f"ResourcesExhausted: {count} hugepages of {kib} KiB needed, {max(0, free)} free"
        self._left = left - need
        for kib, count in _pages_of(limits).items():
            self._pages[kib].take(nodes, count)
        return ""

    def _open(self, memory: Memory) -> None:
        """Count what was promised before."""
        pools = {pool.kib: pool for pool in memory.pools}
        self._pages = {kib: _Pages(pools.get(kib, Pool(kib, 0))) for _size, kib in SIZES}
        left = memory.total - memory.hugetlb - HEADROOM - machines(self._domains, self._instances)
        for allocation, hold in self._held.items():
            files = self._slices.get(allocation, Slice()).files
            limits = hold.limits if hold.limits not in (None, Limits()) else _limits_of(files)
            left -= limits.memory_bytes or 0
            for size, kib in SIZES:
                count = _pages_of(limits).get(kib, 0)
                taken = (_number(files.get(f"hugetlb.{size}.current")) or 0) // (kib * 1024)
                self._pages[kib].take(_nodes(limits), max(0, count - taken))
        self._left = left


class _Pages:
    """Huge pages of one size: what is free, and what holds may still take of it, by the nodes that they are bound to.

    A hold may take all its pages from any one of its nodes, so on each of them all of it counts.
    """

    def __init__(self, pool: Pool) -> None:
        self._host = pool.free
        self._nodes = pool.nodes
        self._claims: dict[frozenset[int], int] = {}

    def left(self, nodes: frozenset[int]) -> int:
        """Pages for one more hold on these nodes; on the whole host where none are given."""
        if not nodes:
            return self._host
        free = sum(self._nodes.get(node, 0) for node in nodes)
        return min(self._host, free - sum(count for claim, count in self._claims.items() if claim & nodes))

    def take(self, nodes: frozenset[int], count: int) -> None:
        """Count what a hold may take."""
        self._host -= count
        if nodes and count:
            self._claims[nodes] = self._claims.get(nodes, 0) + count


def machines(domains: tuple[Domain, ...], instances: tuple[Instance, ...]) -> int:
    """Bytes of normal memory of virtual machines that run or are to run here, with their processes' own.

    Of one that runs, what it was started with counts; the memory of one on huge pages is in their pool already.
    """
    running = {known.lower() for domain in domains for known in domain.names}
    waiting = [instance for instance in instances if instance.id.lower() not in running]
    sizes = [(found.memory_bytes, found.hugepages) for found in domains]
    sizes += [(found.memory_bytes, found.hugepages) for found in waiting]
    return sum(_machine(memory, hugepages) for memory, hugepages in sizes)


def _machine(memory: int, hugepages: bool) -> int:
    return (0 if hugepages else memory) + memory // 32 + 256 * MIB


def _limits_of(files: Mapping[str, str | None]) -> Limits:
    """What a slice's files show: of a hold without its record they alone tell."""
    pages = [(_number(files.get(f"hugetlb.{size}.max")) or 0) // (kib * 1024) for size, kib in SIZES]
    return Limits(None, files.get("cpuset.mems"), None, _number(files.get("memory.max")), *pages)


def _pages_of(limits: Limits | None) -> dict[int, int]:
    """Pages by the KiB of their size; sizes of which none are booked are left out."""
    given = ((2048, limits.hugepages_2mi), (1048576, limits.hugepages_1gi)) if limits else ()
    return {kib: count for kib, count in given if count}


def _nodes(limits: Limits | None) -> frozenset[int]:
    """The NUMA nodes that the limits bind to; none for the whole host, and for a list that is none."""
    try:
        return frozenset(parse(limits.mems or "")) if limits else frozenset()
    except ValueError:
        return frozenset()


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None
