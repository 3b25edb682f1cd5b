# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which layouts fit on a GPU, against an exhaustive search over the vendor's placements, for each product."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig import (
    ComputeInstance,
    GpuInstance,
    known,
    parse_layout,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_goal import Goal, goal, has, kind_of, kinds_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_offered import Offered, Placements
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_placement import by_policy, grid_of, in_order
from tests.gpu.products import products

pytestmark = pytest.mark.exhaustive

MIG = tuple(key for key, product in products().items() if product.mig)
Multiset = tuple[str, ...]  # sorted names of profiles


def test_there_are_the_fifteen_products() -> None:
    assert len(MIG) == 15


# -- the oracle: every way to lay instances on the units, without any of the planner's code


@cache
def arrangements(key: str) -> frozenset[tuple[tuple[str, int], ...]]:
    """All sets of (profile, start) that do not overlap and keep to the counts, by growing them one by one."""
    profiles = products()[key].profiles
    found: set[tuple[tuple[str, int], ...]] = {()}
    frontier: list[tuple[tuple[str, int], ...]] = [()]
    sizes = {one.name: one.size for one in profiles}
    while frontier:
        there = frontier.pop()
        units = {unit for name, start in there for unit in range(start, start + sizes[name])}
        for one in profiles:
            if sum(name == one.name for name, _start in there) == one.most:
                continue
            for start in one.starts:
                if units.isdisjoint(range(start, start + one.size)):
                    more = tuple(sorted((*there, (one.name, start))))
                    if more not in found:
                        found.add(more)
                        frontier.append(more)
    return frozenset(found)


@cache
def feasible(key: str) -> frozenset[Multiset]:
    """The multisets of profiles that some arrangement has."""
    return frozenset(tuple(sorted(name for name, _start in one)) for one in arrangements(key))


# -- the planner, over what nvidia-smi would list


def listed(key: str) -> tuple[tuple[Offered, ...], tuple[Placements, ...]]:
    profiles = products()[key].profiles
    return (
        tuple(Offered(one.id, known(one.name), one.name, 0, one.most) for one in profiles),
        tuple(Placements(one.id, one.starts, one.size) for one in profiles),
    )


def planned(key: str, names: Multiset, there: tuple[tuple[str, int], ...] = (), told: bool = True) -> Goal | None:
    """The way to a layout from instances that are there, None when it is refused."""
    kinds = kinds_of(*listed(key), "GPU 0")
    profiles = {one.name: one for one in products()[key].profiles}
    gis = [
        GpuInstance(at, name, profiles[name].id, start, profiles[name].size) for at, (name, start) in enumerate(there)
    ]
    cis = [ComputeInstance(at, 0, name, 0, 0, profiles[name].compute) for at, (name, _start) in enumerate(there)]
    try:
        return goal(parse_layout(dict(Counter(names)), "layout"), kinds, has(gis, cis, kinds, "GPU 0"), "GPU 0", told)
    except Refused:
        return None


def ends_as(way: Goal) -> tuple[tuple[str, int], ...]:
    """What the GPU has in the end."""
    kept = [(one.gi.profile_name, one.gi.start) for one in way.keep]
    return tuple(sorted((*kept, *((one.kind.name, one.start) for one in way.create))))


def multisets(key: str) -> st.SearchStrategy[Multiset]:
    names = [one.name for one in products()[key].profiles]
    return st.lists(st.sampled_from(names), min_size=1, max_size=8).map(lambda some: tuple(sorted(some)))


@pytest.mark.parametrize("key", MIG)
def test_random_multisets_fit_exactly_when_some_arrangement_has_them(key: str) -> None:
    @given(multisets(key))
    @settings(max_examples=150)
    def agrees(names: Multiset) -> None:
        way = planned(key, names)
        assert (way is not None) == (names in feasible(key)), names
        if way is not None:
            assert ends_as(way) in arrangements(key)
            assert tuple(sorted(name for name, _start in ends_as(way))) == names

    agrees()


@pytest.mark.parametrize("key", MIG)
def test_every_layout_that_fits_is_planned_and_each_that_is_one_too_much_refused(key: str) -> None:
    profiles = products()[key].profiles
    for names in sorted(feasible(key)):
        if names:
            way = planned(key, names)
            assert way is not None, names
            assert ends_as(way) in arrangements(key)
        for one in profiles:
            more = tuple(sorted((*names, one.name)))
            if more not in feasible(key):
                assert planned(key, more) is None, more


@pytest.mark.parametrize("key", ["A30-24GB", "H100-80GB", "RTX-PRO-6000-Blackwell"])
def test_beside_what_is_there_as_much_is_kept_as_can_be(key: str) -> None:
    """The most instances that stay, by trying every subset of them against every arrangement."""

    @given(st.sampled_from(sorted(arrangements(key))), multisets(key))
    @settings(max_examples=60)
    def keeps_the_most(there: tuple[tuple[str, int], ...], names: Multiset) -> None:
        way = planned(key, names, there)
        if names not in feasible(key):
            assert way is None
            return
        assert way is not None
        ends = [one for one in arrangements(key) if tuple(sorted(name for name, _start in one)) == names]
        most = max(len(set(one) & set(there)) for one in ends)
        assert ends_as(way) in ends
        assert len(way.keep) == most
        assert {(one.gi.profile_name, one.gi.start) for one in way.keep} <= set(there)
        assert len(way.keep) + len(way.clear) == len(there)
        wanted = Counter(names)
        lacking = wanted - Counter(one.gi.profile_name for one in way.keep)
        assert set(way.forced) == {one.gi.id for one in way.clear if lacking[one.gi.profile_name]}

    keeps_the_most()


@pytest.mark.parametrize(
    ("key", "names", "starts"),
    [
        # As real boards put them: seven of a kind on an H100, a mix on an H100, and on an RTX PRO 6000.
        ("H100-80GB", ["1g.10gb"] * 7, [6, 4, 5, 0, 1, 2, 3]),
        ("H100-80GB", ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], [4, 0, 2, 3]),
        ("RTX-PRO-6000-Blackwell", ["2g.48gb", "1g.24gb", "1g.24gb"], [0, 6, 9]),
        ("A30-24GB", ["1g.6gb", "1g.6gb", "2g.12gb"], [0, 1, 2]),
    ],
)
def test_the_driver_left_to_choose_takes_the_smallest_block(key: str, names: list[str], starts: list[int]) -> None:
    kinds = kinds_of(*listed(key), "GPU 0")
    by_name = {kind.name: kind for kind in kinds}
    taken: frozenset[int] = frozenset()
    found = []
    for name in names:
        start = by_policy(by_name[name], taken, grid_of(kinds))[0]
        found.append(start)
        taken |= frozenset(range(start, start + by_name[name].size))
    assert found == starts


@pytest.mark.parametrize("key", MIG)
def test_an_order_is_found_for_every_layout_that_fits_where_the_driver_chooses(key: str) -> None:
    kinds = kinds_of(*listed(key), "GPU 0")
    by_name = {kind.name: kind for kind in kinds}
    for names in sorted(feasible(key)):
        order = in_order(tuple(by_name[name] for name in names), frozenset(), grid_of(kinds))
        assert order is not None, names
        assert tuple(sorted((kind.name, start) for kind, start in order)) in arrangements(key)


@pytest.mark.parametrize("key", ["A30-24GB", "A100-40GB", "RTX-PRO-6000-Blackwell"])
def test_an_order_is_found_beside_what_is_there_too(key: str) -> None:
    @given(st.sampled_from(sorted(arrangements(key))), st.sampled_from(sorted(feasible(key) - {()})))
    @settings(max_examples=60)
    def finds_one(there: tuple[tuple[str, int], ...], names: Multiset) -> None:
        way = planned(key, names, there, told=False)
        assert way is not None
        assert ends_as(way) in arrangements(key)

    finds_one()


# -- names


def test_one_profile_under_two_firmwares_is_one_profile() -> None:
    offered = (
        Offered(19, known("1g.10gb"), "1g.10gb", 0, 7),
        Offered(15, known("1g.20gb"), "1g.20gb", 0, 4),
        Offered(20, known("1g.10gb+me"), "1g.10gb+me", 0, 1),
        Offered(0, known("7g.79gb"), "7g.79gb", 0, 1),
    )
    kinds = kinds_of(offered, tuple(Placements(one.id, (0,), 1) for one in offered), "GPU 0")
    assert kind_of(known("7g.80gb"), kinds, "GPU 0").name == "7g.79gb"
    assert kind_of(known("1g.10gb"), kinds, "GPU 0").name == "1g.10gb"
    assert kind_of(known("1g.20gb"), kinds, "GPU 0").name == "1g.20gb"
    assert kind_of(known("1g.19gb"), kinds, "GPU 0").name == "1g.20gb"
    assert kind_of(known("1g.10gb+me"), kinds, "GPU 0").name == "1g.10gb+me"
    for name in ("1g.5gb", "7g.40gb", "7g.80gb+me", "1g.10gb-me", "2g.20gb"):
        with pytest.raises(Refused, match="GPU 0 has no profile"):
            kind_of(known(name), kinds, "GPU 0")


@pytest.mark.parametrize("key", MIG)
def test_no_gpu_is_judged_by_listings_of_different_profiles(key: str) -> None:
    offered, placements = listed(key)
    assert len(kinds_of(offered, placements, "GPU 0")) == len(offered)
    for at in range(len(offered)):
        for some in ((offered[:at], placements), (offered, placements[:at])):
            with pytest.raises(StepFailed, match="-lgip and -lgipp of GPU 0 list different profiles") as caught:
                kinds_of(*some, "GPU 0")
            assert caught.value.retryable
