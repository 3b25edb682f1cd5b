# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of huge pages: the spreading over nodes, the boot arguments, the order of the writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pages import (
    G1,
    M2,
    Gap,
    Node,
    Pages,
    Pool,
    Size,
    arguments,
    count_file,
    held,
    listed,
    move,
    moves,
    short,
    targets,
)

NEW, OLD = (5, 16), (5, 15)
NODES = st.lists(st.integers(0, 31), min_size=1, max_size=8, unique=True).map(lambda found: tuple(sorted(found)))


@pytest.mark.parametrize(
    ("counts", "per_numa", "nodes", "wanted"),
    [
        ((6,), False, (0, 1), {None: 6}),
        ((6,), False, (), {None: 6}),
        ((6,), True, (0, 1), {0: 6, 1: 6}),
        ((6,), True, (0, 2, 8), {0: 6, 2: 6, 8: 6}),
        ((1, 3), False, (0, 1), {0: 1, 1: 3}),
        ((0, 3), False, (0, 8), {0: 0, 8: 3}),
        ((0,), True, (0, 1), {None: 0}),
        ((0, 0), False, (0, 1), {None: 0}),
    ],
)
def test_targets(
    counts: tuple[int, ...], per_numa: bool, nodes: tuple[int, ...], wanted: dict[int | None, int]
) -> None:
    assert targets(counts, per_numa, nodes) == wanted


@pytest.mark.parametrize(
    ("wanted", "release", "said"),
    [
        ({None: 64}, NEW, "hugepages=64"),
        ({None: 64}, OLD, "hugepages=64"),
        ({0: 32, 1: 32}, NEW, "hugepages=64"),  # even: the host's total
        ({0: 32, 1: 32}, OLD, "hugepages=64"),
        ({0: 1, 1: 3}, NEW, "hugepages=0:1,1:3"),
        ({0: 1, 1: 3}, (6, 12), "hugepages=0:1,1:3"),
        ({0: 1, 1: 3}, OLD, "hugepages=4"),
        ({0: 1, 1: 3}, (4, 18), "hugepages=4"),
        ({0: 0, 1: 3}, NEW, "hugepages=1:3"),
        ({0: 0, 1: 3}, OLD, "hugepages=3"),
    ],
)
def test_boot_arguments(wanted: dict[int | None, int], release: tuple[int, ...], said: str) -> None:
    assert arguments(wanted, (0, 1), release) == ("hugepagesz=1G", said)


def test_no_pages_need_no_boot_arguments() -> None:
    assert arguments({None: 0}, (0, 1), NEW) == ()


def test_memory_without_cpus_would_take_its_share_of_a_total() -> None:
    assert arguments({0: 4, 1: 4}, (0, 1, 2), NEW) == ("hugepagesz=1G", "hugepages=0:4,1:4")
    assert arguments({0: 4, 1: 4}, (0, 1, 2), OLD) == ("hugepagesz=1G", "hugepages=8")


@given(nodes=NODES, count=st.integers(0, 500), per_numa=st.booleans())
def test_one_count_is_spread_as_it_says(nodes: tuple[int, ...], count: int, per_numa: bool) -> None:
    wanted = targets((count,), per_numa, nodes)
    assert sum(wanted.values()) == count * (len(nodes) if per_numa else 1)
    assert set(wanted) == (set(nodes) if per_numa and count else {None})


@given(data=st.data(), nodes=NODES, release=st.sampled_from([NEW, OLD]))
def test_boot_arguments_reserve_exactly_what_is_wanted(
    data: st.DataObject, nodes: tuple[int, ...], release: tuple[int, ...]
) -> None:
    counts = tuple(data.draw(st.lists(st.integers(0, 300), min_size=len(nodes), max_size=len(nodes))))
    wanted = targets(counts, False, nodes)
    said = arguments(wanted, nodes, release)
    if not sum(counts):
        assert said == ()
        return
    size, pages = said
    assert size == "hugepagesz=1G"
    number = pages.partition("=")[2]
    if ":" in number:
        pairs = [pair.split(":") for pair in number.split(",")]
        assert {int(node): int(count) for node, count in pairs} == {node: n for node, n in wanted.items() if n}
        assert release >= (5, 16)
        assert len(set(counts)) > 1
    else:
        assert int(number) == sum(counts)
        assert release < (5, 16) or len(set(counts)) == 1


def test_memory_is_given_back_before_it_is_taken_and_large_pages_come_first() -> None:
    wanted: dict[Size, dict[Node, int]] = {G1: {0: 0, 1: 4}, M2: {0: 100, 1: 0}}
    pools = {G1: Pool(Pages(2), {0: Pages(2, 2), 1: Pages(0)}), M2: Pool(Pages(50), {0: Pages(0), 1: Pages(50, 50)})}
    assert [(step.path, step.text) for step in moves(wanted, pools, Past())] == [
        ("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "0"),
        ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "0"),
        ("/sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "4"),
        ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "100"),
    ]


def test_every_pool_is_a_lane_of_its_own() -> None:
    wanted: dict[Size, dict[Node, int]] = {G1: {0: 1, 1: 1}, M2: {None: 1}}
    steps = moves(wanted, {G1: Pool(Pages(0)), M2: Pool(Pages(0))}, Past())
    assert len({step.lane for step in steps}) == 3
    assert "" not in {step.lane for step in steps}


@pytest.mark.parametrize(
    ("size", "wanted", "now", "tried", "retry"),
    [
        (M2, 8, Pages(8, 8), None, None),  # there
        (M2, 8, Pages(10, 0, 2), None, None),  # there, and two in use beyond it
        (M2, 8, Pages(0), None, False),
        (M2, 8, Pages(5, 5), "5", True),  # tried: again, each pass
        (G1, 8, Pages(0), None, False),
        (G1, 8, Pages(5, 5), "5", None),  # tried: the boot loader's from here
        (G1, 8, Pages(3, 3), "5", True),  # somebody took some away since
        (G1, 2, Pages(5, 5), None, False),
        (G1, 2, Pages(5, 1), "4", True),  # what could not be given back is tried again
    ],
)
def test_when_a_pool_is_written(size: Size, wanted: int, now: Pages, tried: str | None, retry: bool | None) -> None:
    past = Past(tried={} if tried is None else {f"{count_file(size, 1)}={wanted}": tried})
    step = move(size, 1, wanted, now, past)
    assert (None if step is None else step.retry) == retry
    if step is not None:
        assert step.tries


def test_a_shortfall_counts_once_the_kernel_was_asked() -> None:
    wanted: dict[Node, int] = {0: 4, 1: 4}
    pool = Pool(Pages(5), {0: Pages(4), 1: Pages(1)})
    assert short(G1, wanted, pool, Past()) == ()
    assert short(G1, wanted, pool, Past(tried={f"{count_file(G1, 1)}=4": "1"})) == (Gap(1, 4, 1),)
    assert short(G1, wanted, pool, Past(tried={f"{count_file(G1, 1)}=8": "1"})) == ()
    assert short(G1, wanted, pool, Past(failed=frozenset(("1 GiB pages on node 1",)))) == (Gap(1, 4, 1),)


def test_pages_in_use_beyond_the_count_are_told_unless_surplus_is_allowed() -> None:
    pool = Pool(Pages(10, 0, 6))
    assert held(M2, {None: 4}, pool, Past()) == (Gap(None, 4, 10),)
    assert held(M2, {None: 4}, pool._replace(overcommit=16), Past()) == ()
    assert held(M2, {None: 4}, Pool(Pages(10, 10)), Past()) == ()  # not asked yet: it may well shrink


def test_gaps_in_words() -> None:
    assert listed((Gap(0, 4, 3), Gap(1, 4, 2))) == "3 of 4 on node 0, 2 of 4 on node 1"
    assert listed((Gap(None, 8, 5),)) == "5 of 8"
