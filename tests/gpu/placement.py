# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a new GPU instance lies: the smallest free aligned block that takes it, an 8-unit board's upper half first.

The units of a GPU form a tree of halves. Of the free blocks that are not part of a larger free block the one with the
fewest usable units is taken, and inside it the half with the fewest usable units that still takes the instance; among
equals the lower one. An 8-unit board has 7 compute slices: its last unit is memory only, so its upper half is smaller.
"""

from __future__ import annotations

from itertools import combinations

from .cards import Card
from .products import GpuProfile

Block = tuple[int, int]  # start, size


def usable(block: Block, units: int) -> int:
    """Compute slices of a block."""
    start, size = block
    return size - (1 if units == 8 and start + size == units else 0)


def taken(card: Card) -> set[int]:
    """Units under an instance."""
    found: set[int] = set()
    for gi in card.instances:
        found.update(range(gi.start, gi.start + card.profile(gi.profile).size))
    return found


def halves(block: Block) -> list[Block]:
    """The two halves of a block, or nothing."""
    start, size = block
    return [(start, size // 2), (start + size // 2, size // 2)] if size % 2 == 0 else []


def free_blocks(units: int, occupied: set[int]) -> list[Block]:
    """The largest free blocks."""
    found: list[Block] = []
    queue: list[Block] = [(0, units)]
    while queue:
        block = queue.pop(0)
        if not occupied & set(range(block[0], block[0] + block[1])):
            found.append(block)
        else:
            queue += halves(block)
    return found


def place(card: Card, profile: GpuProfile) -> int | None:
    """The start that the driver chooses, None when there is no room."""
    units = card.kind.units
    if sum(gi.profile == profile.id for gi in card.instances) >= profile.most:
        return None

    def fits(block: Block) -> list[int]:
        return [start for start in profile.starts if block[0] <= start and start + profile.size <= block[0] + block[1]]

    blocks = [block for block in free_blocks(units, taken(card)) if fits(block)]
    while blocks:
        best = min(blocks, key=lambda block: (usable(block, units), block[0]))
        blocks = [block for block in halves(best) if fits(block)]
        if not blocks:
            return fits(best)[0]
    return None


def room_at(card: Card, profile: GpuProfile, start: int) -> bool:
    """Whether an instance of the profile can be made at this start."""
    return (
        start in profile.starts
        and sum(gi.profile == profile.id for gi in card.instances) < profile.most
        and not taken(card) & set(range(start, start + profile.size))
    )


def remaining(card: Card, profile: GpuProfile) -> int:
    """How many more of the profile fit."""
    occupied = taken(card)
    free = [start for start in profile.starts if not occupied & set(range(start, start + profile.size))]
    left = profile.most - sum(gi.profile == profile.id for gi in card.instances)
    for count in range(min(left, len(free)), 0, -1):
        for starts in combinations(free, count):
            if all(second - first >= profile.size for first, second in zip(starts, starts[1:])):
                return count
    return 0


def position(units: int, start: int, size: int, swapped: bool = False) -> int:
    """An instance's id: its position in the tree, 0 the whole, 1 and 2 the halves (some boards count those swapped)."""
    level = 0
    while size << level < units:
        level += 1
    if swapped and level:
        start = (start + units // 2) % units
    return (1 << level) - 1 + start // size


def place_compute(occupied: set[int], whole: int, slices: int) -> int | None:
    """The first start of so many free compute slices among `whole`."""
    for start in range(whole - slices + 1):
        if not occupied & set(range(start, start + slices)):
            return start
    return None
