# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU lists: what the kernel reads and writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cpulist import check_syntax, parse, render


@pytest.mark.parametrize(
    ("text", "last", "cpus"),
    [
        ("", None, ()),
        ("\n", None, ()),
        ("5", None, (5,)),
        ("4-7", None, (4, 5, 6, 7)),
        ("4-5,8,10-11", None, (4, 5, 8, 10, 11)),
        ("8,4-5", None, (4, 5, 8)),
        ("4-4", None, (4,)),
        ("4-6,5-7", None, (4, 5, 6, 7)),
        ("0-10:2/4", None, (0, 1, 4, 5, 8, 9)),
        ("1-8:1/2", None, (1, 3, 5, 7)),
        ("4-N", 7, (4, 5, 6, 7)),
        ("N", 7, (7,)),
    ],
)
def test_lists_that_are_taken(text: str, last: int | None, cpus: tuple[int, ...]) -> None:
    assert parse(text, last) == cpus
    check_syntax(text)


@pytest.mark.parametrize(
    "text",
    [
        "7-4",
        "4-",
        "-4",
        "4,,5",
        "4,",
        "a",
        "4-b",
        "all",
        "none",
        "4 - 7",
        "0x4",
        "4-7:0/2",
        "4-7:3/2",
        "4-7:2/0",
        "4:1/2",
        "99999",
        "8192",
        "1-99999999999",
        "\u0664",
        "4;7",
        "4-5-6",
        "!3",
    ],
)
def test_lists_that_no_host_takes(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|CPU"):
        parse(text, 7)
    with pytest.raises(ValueError, match=r"range|CPU"):
        check_syntax(text)


def test_a_range_to_the_last_cpu_may_run_backwards_on_one_host_only() -> None:
    check_syntax("4-N")
    with pytest.raises(ValueError, match=r"4-N runs backwards \(N is 3 here\)"):
        parse("4-N", 3)
    with pytest.raises(ValueError, match="not known"):
        parse("4-N")


def test_the_shortest_list() -> None:
    assert render((127, 4, 5, 6, 9, 10, 126)) == "4-6,9-10,126-127"
    assert render(parse("4-63,68-127")) == "4-63,68-127"
    assert render(()) == ""


@given(st.sets(st.integers(0, 8191), max_size=200))
def test_a_list_comes_back_as_it_went(cpus: set[int]) -> None:
    assert parse(render(cpus)) == tuple(sorted(cpus))


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 40)), max_size=20))
def test_the_shortest_list_means_the_same(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" for first, more in ranges)
    assert parse(render(parse(text))) == parse(text)
    assert len(render(parse(text))) <= len(text)


@given(st.integers(0, 200), st.integers(1, 200))
def test_every_reversed_range_is_refused(end: int, more: int) -> None:
    with pytest.raises(ValueError, match="backwards"):
        parse(f"{end + more}-{end}")
