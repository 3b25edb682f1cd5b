# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of huge pages: what is wanted on which node, what the kernel has, and the writes between the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Optional

from ..core.plan import Past
from ..core.step import Effect, Step, set_value

HOST = "/sys/kernel/mm/hugepages"
NODES = "/sys/devices/system/node"
Node = Optional[int]  # None: the host's pool, which the kernel spreads over its nodes as it likes


class Size(NamedTuple):
    """A page size: its setting, how it is written for people, its directory's name, and how many KiB it is."""

    wire: str
    words: str
    folder: str
    kib: int


M2 = Size("pages2m", "2 MiB", "hugepages-2048kB", 2048)
G1 = Size("pages1g", "1 GiB", "hugepages-1048576kB", 1048576)
SIZES = (G1, M2)
Wanted = Mapping[Size, Mapping[Node, int]]  # pages by size and node


class Pages(NamedTuple):
    """A pool as its directory shows it, in pages; `total` includes the surplus, which goes when it is given back."""

    total: int
    free: int = 0
    surplus: int = 0

    @property
    def persistent(self) -> int:
        """What the pool is set to: nr_hugepages less the surplus."""
        return self.total - self.surplus

    @property
    def used(self) -> int:
        """Pages that something has."""
        return max(0, self.total - self.free)


class Pool(NamedTuple):
    """All pools of one size; `host` is None where the kernel has none. `overcommit`: surplus that is allowed."""

    host: Pages | None = None
    nodes: Mapping[int, Pages] = {}
    overcommit: int = 0

    def at(self, node: Node) -> Pages:
        """The pool of a node, or the host's."""
        shown = self.host if node is None else self.nodes.get(node)
        return shown if shown is not None else Pages(0)


class Gap(NamedTuple):
    """A pool that is not as wanted although the kernel was asked in this boot."""

    node: Node
    wanted: int
    got: int


def directory(size: Size, node: Node) -> str:
    """The directory of a pool."""
    return f"{HOST if node is None else f'{NODES}/node{node}/hugepages'}/{size.folder}"


def count_file(size: Size, node: Node) -> str:
    """The file that shows a pool's count and takes a new one."""
    return f"{directory(size, node)}/nr_hugepages"


def targets(counts: tuple[int, ...], per_numa: bool, nodes: tuple[int, ...]) -> dict[Node, int]:
    """Pages wanted by node. One count is the host's, or each node's with `per_numa`; several are one a node, in order.

    None at all is asked of the host's pool, so that nodes that are not counted give theirs back too.
    """
    if not any(counts):
        return {None: 0}
    if len(counts) == 1:
        return dict.fromkeys(nodes, counts[0]) if per_numa else {None: counts[0]}
    return dict(zip(nodes, counts))


def on(node: Node) -> str:
    """ " on node 1", or nothing for the host."""
    return "" if node is None else f" on node {node}"


def move(size: Size, node: Node, wanted: int, now: Pages, past: Past) -> Step | None:
    """The write that brings a pool to its count; None when it is there, or was tried in vain.

    A shortfall of 2 MiB pages is tried again each pass. One of 1 GiB pages is not, while the pool is what the kernel
    gave: that much memory in one piece does not come back by itself, and the boot loader is asked instead.
    """
    if now.persistent == wanted:
        return None
    path = count_file(size, node)
    before = past.tried.get(f"{path}={wanted}")
    grows = wanted > now.persistent
    if grows and size is G1 and before == str(now.total):
        return None
    action = f"set the pool of {size.words} pages{on(node)} to {wanted} ({now.total} now)"
    if grows and size is G1:
        action += "; what the kernel cannot find, the boot loader reserves"
    effects = _prediction(path, wanted, now, before is not None)
    return set_value(
        path, str(wanted), action, lane=lane(size, node), tries=True, retry=before is not None, effects=effects
    )


def _prediction(path: str, wanted: int, now: Pages, tried: bool) -> tuple[Effect, ...]:
    """What is asked for the first time is had, but for pages in use, which stay; what came up short does so again."""
    total, surplus = (now.total, now.surplus) if tried else (max(wanted, now.used), max(0, now.used - wanted))
    folder = path.rpartition("/")[0]
    return (
        Effect("file", path, f"{total}\n"),
        Effect("file", f"{folder}/free_hugepages", f"{max(0, total - now.used)}\n"),
        Effect("file", f"{folder}/surplus_hugepages", f"{surplus}\n"),
    )


def moves(wanted: Wanted, pools: Mapping[Size, Pool], past: Past) -> tuple[Step, ...]:
    """All writes: what gives memory back first, then the pages that need the most of it in one piece."""
    shrinks: list[Step] = []
    grows: list[Step] = []
    for size in SIZES:
        for node, count in wanted.get(size, {}).items():
            step = move(size, node, count, pools[size].at(node), past)
            if step is not None:
                (grows if count > pools[size].at(node).persistent else shrinks).append(step)
    return (*shrinks, *grows)


def short(size: Size, wanted: Mapping[Node, int], pool: Pool, past: Past) -> tuple[Gap, ...]:
    """Pools with fewer pages than wanted after the kernel was asked in this boot."""
    return tuple(
        Gap(node, count, pool.at(node).persistent)
        for node, count in wanted.items()
        if pool.at(node).persistent < count and _asked(size, node, count, past)
    )


def _asked(size: Size, node: Node, count: int, past: Past) -> bool:
    """Whether the kernel was asked for the count in this boot and did not give it, or refused the write."""
    return f"{count_file(size, node)}={count}" in past.tried or lane(size, node) in past.failed


def lane(size: Size, node: Node) -> str:
    """The lane of a pool."""
    return f"{size.words} pages{on(node)}"


def held(size: Size, wanted: Mapping[Node, int], pool: Pool, past: Past) -> tuple[Gap, ...]:
    """Pools that are larger than wanted because their pages are in use.

    The kernel keeps those as surplus until they are given back; where surplus is allowed anyway it says nothing.
    """
    found = []
    for node, count in wanted.items():
        now = pool.at(node)
        set_already = now.persistent == count or _asked(size, node, count, past)
        if now.total > count and set_already and not (pool.overcommit and now.persistent == count):
            found.append(Gap(node, count, now.total))
    return tuple(found)


def listed(gaps: tuple[Gap, ...]) -> str:
    """ "3 of 4 on node 0, 2 of 4 on node 1", or "5 of 8"."""
    return ", ".join(f"{gap.got} of {gap.wanted}{on(gap.node)}" for gap in gaps)


def arguments(wanted: Mapping[Node, int], memory_nodes: tuple[int, ...], release: tuple[int, ...]) -> tuple[str, ...]:
    """The kernel arguments that reserve the 1 GiB pages; none for none.

    The kernel spreads a total evenly over the nodes with memory. Counts that are not so are said by node, which it
    understands since Linux 5.16; an older one gets the total, and the spreading is mended at runtime.
    """
    total = sum(wanted.values())
    if not total:
        return ()
    by_node = {node: count for node, count in wanted.items() if node is not None}
    uneven = bool(by_node) and (len(set(by_node.values())) > 1 or set(by_node) != set(memory_nodes))
    if uneven and release >= (5, 16):
        return ("hugepagesz=1G", "hugepages=" + ",".join(f"{node}:{count}" for node, count in by_node.items() if count))
    return ("hugepagesz=1G", f"hugepages={total}")
