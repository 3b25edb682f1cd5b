# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a GPU comes to a layout: what it keeps of what it has, what has to go, and what is made where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from ..core.errors import Refused, StepFailed
from .mig import ALL, ComputeInstance, GpuInstance, Layout, Profile, known
from .mig_offered import Offered, Placements
from .mig_placement import Grid, Kind, cells, grid_of, in_order, most, place, too_many
from .mig_text import name_of, text_of
from .unit_names import MIG_LAYOUT as UNIT

# One profile under two firmwares differs by a few percent in what its name says of the memory (7g.79gb, 7g.80gb);
# two profiles of the same slices on one GPU by half and more (1g.10gb, 1g.20gb).
NEAR = 0.1

Sizes = tuple[int, ...]  # of compute instances, in slices, the largest first
Want = tuple[Kind, Sizes]  # a GPU instance with its compute instances


class Has(NamedTuple):
    """A GPU instance that is there, as a kind of this GPU, with its compute instances."""

    gi: GpuInstance
    kind: Kind
    cis: tuple[ComputeInstance, ...] = ()

    @property
    def sizes(self) -> Sizes:
        """The compute instances' slices."""
        return _largest(known(ci.profile_name).compute for ci in self.cis)


class Kept(NamedTuple):
    """A GPU instance that stays, the ids of compute instances that go from it, and the sizes of those that come."""

    gi: GpuInstance
    kind: Kind
    drop: tuple[int, ...] = ()
    add: Sizes = ()
    sizes: Sizes = ()  # all that it has in the end


class New(NamedTuple):
    """A GPU instance that is made."""

    kind: Kind
    start: int
    sizes: Sizes


class Goal(NamedTuple):
    """The way to the layout. `forced` are ids of instances that the layout has too, but that leave it no room."""

    keep: tuple[Kept, ...] = ()
    clear: tuple[Has, ...] = ()
    create: tuple[New, ...] = ()
    forced: tuple[int, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether the GPU is as it should be."""
        return not (self.clear or self.create or any(kept.drop or kept.add for kept in self.keep))


def full(want: Want) -> bool:
    """Whether one compute instance fills the GPU instance."""
    return want[1] == (want[0].profile.slices,)


# -- what this GPU offers


def kinds_of(offered: Iterable[Offered], placements: Iterable[Placements], gpu: str) -> tuple[Kind, ...]:
    """The profiles of a GPU with their placements.

    Raises StepFailed where one listing has a profile that the other lacks: drivers list the same ones in both, so one
    was cut off, maybe at the border of a row, and neither a refusal nor what is destroyed may rest on it.
    """
    profiles = {each.id: each for each in offered}
    where = {each.profile_id: each for each in placements}
    if profiles.keys() != where.keys():
        ids = ", ".join(map(str, sorted(profiles.keys() ^ where.keys())))
        raise StepFailed(
            f"nvidia-smi mig -lgip and -lgipp of {gpu} list different profiles (only one of them has ID {ids}): run "
            "again, and update the driver if it stays so"
        )
    return tuple(
        Kind(each.name, each.profile, where[each.id].starts, where[each.id].size, each.total)
        for each in profiles.values()
    )


def alike(one: Profile, other: Profile) -> bool:
    """Whether the profiles may be one under two firmwares, which differ a little in the memory that they name."""
    return (one.slices, one.attribute) == (other.slices, other.attribute) and (
        abs(one.memory_gb - other.memory_gb) < NEAR * max(one.memory_gb, other.memory_gb)
    )


def kind_of(profile: Profile, kinds: tuple[Kind, ...], gpu: str) -> Kind:
    """The profile as this GPU offers it: of the same slices and attribute, with the nearest memory. Raises Refused."""
    fitting = [kind for kind in kinds if alike(kind.profile, profile)]
    if not fitting:
        offers = ", ".join(kind.name for kind in kinds)
        raise Refused(f"{UNIT}: {gpu} has no profile {name_of(profile)}, it has {offers}: correct the layout")
    return min(fitting, key=lambda kind: abs(kind.profile.memory_gb - profile.memory_gb))


def asked(layout: Layout, kinds: tuple[Kind, ...], gpu: str) -> dict[Kind, Counter[int]]:
    """The MIG devices of the layout on this GPU: of each kind how many of each size, in compute slices."""
    found: dict[Kind, Counter[int]] = {}
    for profile, count in layout.devices:
        kind = kind_of(profile, kinds, gpu)
        every = most(kind, grid_of(kinds)) * (profile.slices // profile.compute)
        found.setdefault(kind, Counter())[profile.compute] += every if layout.kind == ALL else count
    return found


def has(gis: Iterable[GpuInstance], cis: Iterable[ComputeInstance], kinds: tuple[Kind, ...], gpu: str) -> list[Has]:
    """What the GPU has, as its own kinds; raises StepFailed for an instance of a profile that it does not offer."""
    by_name = {kind.name: kind for kind in kinds}
    listed = tuple(cis)
    found = []
    for gi in gis:
        if gi.profile_name not in by_name:
            raise StepFailed(f"{gpu} has an instance of {gi.profile_name}, and nvidia-smi mig -lgip offers none of it")
        mine = tuple(ci for ci in listed if ci.gi == gi.id)
        found.append(Has(gi, by_name[gi.profile_name], mine))
    return found


# -- from devices to GPU instances


def _largest(sizes: Iterable[int]) -> Sizes:
    return tuple(sorted(sizes, reverse=True))


def _packed(sizes: Iterable[int], slices: int, bins: list[list[int]]) -> list[list[int]]:
    """The bins with the sizes put into the first that has room, the largest first, and more bins as needed."""
    for size in _largest(sizes):
        room = next((one for one in bins if sum(one) + size <= slices), None)
        if room is None:
            room = []
            bins.append(room)
        room.append(size)
    return bins


def _as_it_is(kind: Kind, counts: Counter[int], there: list[Has]) -> list[Sizes]:
    """The GPU instances of a kind, made of those that are there as far as their compute instances are wanted."""
    left = Counter(counts)
    bins: list[list[int]] = []
    for one in there:
        staying = []
        for size in one.sizes:
            if left[size]:
                left[size] -= 1
                staying.append(size)
        if staying:
            bins.append(staying)
    return [_largest(one) for one in _packed(left.elements(), kind.profile.slices, bins)]


def _wants(devices: dict[Kind, Counter[int]], there: list[Has]) -> list[list[Want]]:
    """Ways to divide the devices into GPU instances: as they are divided now, then into as few as possible."""
    as_is, fewest = [], []
    for kind, counts in devices.items():
        mine = sorted((one for one in there if one.kind == kind), key=lambda one: one.sizes, reverse=True)
        as_is += [(kind, sizes) for sizes in _as_it_is(kind, counts, mine)]
        fewest += [(kind, _largest(one)) for one in _packed(counts.elements(), kind.profile.slices, [])]
    return [as_is] if Counter(as_is) == Counter(fewest) else [as_is, fewest]


# -- the way


def goal(layout: Layout, kinds: tuple[Kind, ...], there: list[Has], gpu: str, told: bool = True) -> Goal:
    """The way to the layout that keeps the most; raises Refused where the GPU cannot have it at all.

    `gpu` names it in messages. `told`: the driver takes the starts; else it chooses them itself, and an order is found
    in which what it chooses leaves room for all.
    """
    devices = asked(layout, kinds, gpu)
    counts = tuple((kind, tuple(sorted(sizes.items()))) for kind, sizes in devices.items())
    way = _best(counts, kinds, tuple(there), told)
    if way is not None:
        return way
    raise Refused(
        f"{UNIT}: {gpu} has no room for {text_of(layout)}: its profiles have the places "
        + ", ".join(f"{kind.name} {kind.limit} at most at {{{_listed(kind.starts)}}}:{kind.size}" for kind in kinds)
        + ": correct the layout"
    )


@lru_cache(maxsize=64)
def _best(
    counts: tuple[tuple[Kind, tuple[tuple[int, int], ...]], ...],
    kinds: tuple[Kind, ...],
    there: tuple[Has, ...],
    told: bool,
) -> Goal | None:
    """The way, None where there is none. The search is long, and a pass asks many times for the way of equal GPUs."""
    mine = list(there)
    for wants in _wants({kind: Counter(dict(sizes)) for kind, sizes in counts}, mine):
        way = None if too_many(kind for kind, _sizes in wants) else _way(wants, mine, grid_of(kinds), told)
        if way is not None:
            return way
    return None


def _listed(starts: Iterable[int]) -> str:
    return ",".join(map(str, starts))


def _way(wants: list[Want], there: list[Has], grid: Grid, told: bool) -> Goal | None:
    """The way that keeps the most instances, and of these the most compute instances, beside which the rest fits."""
    wanted = Counter(kind for kind, _sizes in wants)
    mine = [one for one in there if wanted[one.kind]]
    for count in range(len(mine), -1, -1):
        ways = [
            (_unchanged(kept), kept, rest, starts)
            for some in combinations(mine, count)
            if not Counter(one.kind for one in some) - wanted
            for kept, rest in [_matched(some, wants)]
            for starts in _starts(rest, some, grid, told)
        ]
        if ways:
            _score, kept, rest, starts = max(ways, key=lambda way: way[0])
            return _goal(kept, _made(rest, starts), there, wanted)
    return None


def _unchanged(kept: tuple[Kept, ...]) -> int:
    return sum(len(one.sizes) - len(one.add) for one in kept)


def _matched(some: tuple[Has, ...], wants: list[Want]) -> tuple[tuple[Kept, ...], list[Want]]:
    """Each instance with the wanted one that it is to be, those first that are it already; and the wants that stay."""
    rest = list(wants)
    kept: list[Kept] = []
    waiting = list(some)
    while waiting:
        one, want = max(
            ((one, want) for one in waiting for want in rest if want[0] == one.kind),
            key=lambda pair: (pair[0].sizes == pair[1][1], _common(pair[0].sizes, pair[1][1])),
        )
        waiting.remove(one)
        rest.remove(want)
        kept.append(_kept(one, want[1]))
    return tuple(sorted(kept, key=lambda each: each.gi.id)), rest


def _common(one: Sizes, other: Sizes) -> int:
    return sum((Counter(one) & Counter(other)).values())


def _kept(one: Has, sizes: Sizes) -> Kept:
    """What changes in an instance that stays. Into one that is part full, only single slices go with certainty."""
    surplus = Counter(one.sizes) - Counter(sizes)
    add = _largest((Counter(sizes) - Counter(one.sizes)).elements())
    drop = []
    for ci in one.cis:
        size = known(ci.profile_name).compute
        if surplus[size]:
            surplus[size] -= 1
            drop.append(ci.id)
    if add and add[0] > 1 and len(drop) < len(one.cis):
        return Kept(one.gi, one.kind, tuple(ci.id for ci in one.cis), sizes, sizes)
    return Kept(one.gi, one.kind, tuple(drop), add, sizes)


def _starts(rest: list[Want], some: tuple[Has, ...], grid: Grid, told: bool) -> Iterator[tuple[tuple[Kind, int], ...]]:
    """Where the rest goes beside some that stay, at most one answer."""
    taken = frozenset().union(*(cells(one.gi.start, one.gi.size) for one in some))
    wanted = tuple(kind for kind, _sizes in rest)
    if told:
        starts = place(wanted, taken, grid)
        found = None if starts is None else tuple(zip(wanted, starts))
    else:
        found = in_order(wanted, taken, grid)
    if found is not None:
        yield found


def _made(rest: list[Want], starts: tuple[tuple[Kind, int], ...]) -> tuple[New, ...]:
    """What is made, in the order in which it is: each place with the compute instances of a want of its kind."""
    left = list(rest)
    made = []
    for kind, start in starts:
        want = next(want for want in left if want[0] == kind)
        left.remove(want)
        made.append(New(kind, start, want[1]))
    return tuple(made)


def _goal(kept: tuple[Kept, ...], create: tuple[New, ...], there: list[Has], wanted: Counter[Kind]) -> Goal:
    stays = {each.gi.id for each in kept}
    clear = tuple(one for one in there if one.gi.id not in stays)
    lacking = wanted - Counter(each.kind for each in kept)
    forced = tuple(one.gi.id for one in clear if lacking[one.kind])
    return Goal(kept, clear, create, forced)
