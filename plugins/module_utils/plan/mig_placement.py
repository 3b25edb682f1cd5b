# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where GPU instances fit on a GPU.

An instance takes `size` units of the GPU from one of its profile's starts on (`nvidia-smi mig -lgipp`), and no more of
a profile fit than the GPU offers at once. That decides, and not the sum of slices: 3g+3g+1g are 7, and do not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import NamedTuple

from .mig import Profile

Block = tuple[int, int]  # start, size
ORDERS = 5040  # creation orders tried on paper: all of seven instances


class Kind(NamedTuple):
    """A profile as one GPU offers it: where its instances may start, the units of each, how many there may be."""

    name: str
    profile: Profile
    starts: tuple[int, ...]
    size: int
    limit: int


class Grid(NamedTuple):
    """A GPU's memory units, and those of them that the smallest instances reach: an 8-unit GPU has 7 of them."""

    units: int
    usable: frozenset[int]


def grid_of(kinds: Iterable[Kind]) -> Grid:
    """The grid that the placements of all of a GPU's profiles span."""
    placed = [kind for kind in kinds if kind.starts]
    least = min((kind.size for kind in placed), default=0)
    return Grid(
        max((max(kind.starts) + kind.size for kind in placed), default=0),
        frozenset().union(*(cells(start, kind.size) for kind in placed if kind.size == least for start in kind.starts)),
    )


def cells(start: int, size: int) -> frozenset[int]:
    """The units under an instance."""
    return frozenset(range(start, start + size))


def too_many(wanted: Iterable[Kind]) -> Kind | None:
    """A kind of which more are wanted than the GPU offers at once."""
    counts = Counter(wanted)
    return next((kind for kind, count in counts.items() if count > kind.limit), None)


def place(wanted: tuple[Kind, ...], taken: frozenset[int], grid: Grid) -> tuple[int, ...] | None:
    """A start for each of the wanted instances, in their order, beside the units that are taken; None: they do not fit.

    Tries every placement, those first that the driver would choose.
    """
    by_size = sorted(range(len(wanted)), key=lambda at: (-wanted[at].size, len(wanted[at].starts), wanted[at].name))
    dead: set[tuple[int, frozenset[int]]] = set()

    def rest(at: int, taken: frozenset[int]) -> dict[int, int] | None:
        if at == len(by_size):
            return {}
        if (at, taken) in dead:
            return None
        kind = wanted[by_size[at]]
        for start in by_policy(kind, taken, grid):
            found = rest(at + 1, taken | cells(start, kind.size))
            if found is not None:
                return {by_size[at]: start, **found}
        dead.add((at, taken))
        return None

    found = rest(0, taken)
    return None if found is None else tuple(found[at] for at in range(len(wanted)))


def most(kind: Kind, grid: Grid) -> int:
    """How many of the kind an empty GPU takes."""
    for count in range(min(kind.limit, len(kind.starts)), 0, -1):
        if place((kind,) * count, frozenset(), grid) is not None:
            return count
    return 0


# -- the driver's own choice, where it is not told a start


def in_order(wanted: tuple[Kind, ...], taken: frozenset[int], grid: Grid) -> tuple[tuple[Kind, int], ...] | None:
    """An order in which the driver, left to choose, makes room for all, with the starts it then takes; largest first.

    None when no order leads there.
    """
    largest_first = sorted(wanted, key=lambda kind: (-kind.size, -kind.profile.slices, kind.name))
    seen: set[tuple[Kind, ...]] = set()
    for number, order in enumerate(permutations(largest_first)):
        if number >= ORDERS:
            return None
        if order in seen:
            continue
        seen.add(order)
        starts = _left_to_it(order, taken, grid)
        if starts is not None:
            return tuple(zip(order, starts))
    return None


def _left_to_it(order: tuple[Kind, ...], taken: frozenset[int], grid: Grid) -> list[int] | None:
    starts = []
    for kind in order:
        start = next(iter(by_policy(kind, taken, grid)), None)
        if start is None:
            return None
        starts.append(start)
        taken |= cells(start, kind.size)
    return starts


def by_policy(kind: Kind, taken: frozenset[int], grid: Grid) -> list[int]:
    """The free starts of a kind, the one first that the driver would choose.

    It takes the smallest free aligned block, the one with fewer usable units, so on an 8-unit GPU the upper half first.
    """
    return list(_walk(kind, _free_blocks(taken, grid), grid))


def _free_blocks(taken: frozenset[int], grid: Grid) -> list[Block]:
    """The largest free blocks of the tree of halves."""
    found: list[Block] = []
    queue: list[Block] = [(0, grid.units)]
    while queue:
        block = queue.pop()
        if not taken & cells(*block):
            found.append(block)
        else:
            queue += _halves(block)
    return found


def _halves(block: Block) -> list[Block]:
    start, size = block
    return [(start, size // 2), (start + size // 2, size // 2)] if size > 1 and size % 2 == 0 else []


def _walk(kind: Kind, blocks: list[Block], grid: Grid) -> Iterator[int]:
    for block in sorted(blocks, key=lambda block: (len(cells(*block) & grid.usable), block[0])):
        inside = _inside(kind, block)
        halves = [half for half in _halves(block) if _inside(kind, half)]
        yield from _walk(kind, halves, grid)
        in_halves = {start for half in halves for start in _inside(kind, half)}
        yield from (start for start in inside if start not in in_halves)


def _inside(kind: Kind, block: Block) -> list[int]:
    start, size = block
    return [at for at in kind.starts if start <= at and at + kind.size <= start + size]
