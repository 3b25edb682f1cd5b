# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines as words and groups; edits that come undone without a trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cmdline import (
    edited,
    groups,
    key,
    lacking,
    rivals,
    words,
)

PAGES = (("hugepagesz=1G", "hugepages=64"),)


def test_a_quoted_word_is_one_word() -> None:
    assert words('ro dyndbg="file a +p; file b +p" quiet') == ("ro", 'dyndbg="file a +p; file b +p"', "quiet")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ro quiet", (("ro",), ("quiet",))),
        ("hugepagesz=1G hugepages=64", PAGES),
        ("default_hugepagesz=1G hugepages=4", (("default_hugepagesz=1G",), ("hugepages=4",))),
        ("hugepagesz=1G hugepages=4 hugepages=8", (("hugepagesz=1G", "hugepages=4"), ("hugepages=8",))),
    ],
)
def test_a_page_count_belongs_to_the_size_before_it(line: str, expected: object) -> None:
    assert groups(words(line)) == expected


def test_a_pair_is_not_there_when_its_words_are_apart() -> None:
    line = "hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=64"
    assert lacking(line, PAGES) == PAGES
    assert lacking(line + " hugepagesz=1G hugepages=64", PAGES) == ()


def test_another_page_size_is_no_rival_and_another_count_is() -> None:
    line = "hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=2"
    assert key(PAGES[0]) == "hugepagesz=1G hugepages"
    assert rivals(line, PAGES) == (("hugepagesz=1G", "hugepages=2"),)


def test_arguments_given_twice_stay_twice() -> None:
    line = "console=tty0 console=ttyS0,115200"
    assert edited(line, (), (("iommu=pt",),)) == line + " iommu=pt"


def test_an_argument_is_added_once() -> None:
    once = edited("ro", (), (("audit=1",),))
    assert edited(once, (), (("audit=1",),)) == once == "ro audit=1"


@pytest.mark.parametrize(
    ("line", "drop", "expected"),
    [
        ("a iommu=pt b", "iommu=pt", "a b"),
        ("iommu=pt b", "iommu=pt", "b"),
        ("iommu=pt", "iommu=pt", ""),
        ("a  b iommu=pt", "iommu=pt", "a  b"),
        ("iommu=ptx xiommu=pt iommu=pt,on", "iommu=pt", "iommu=ptx xiommu=pt iommu=pt,on"),
        ('dyndbg="file iommu=pt +p" ro', "iommu=pt", 'dyndbg="file iommu=pt +p" ro'),
        ("iommu=pt ro iommu=pt", "iommu=pt", "iommu=pt ro"),
    ],
)
def test_taking_out_touches_exactly_the_word(line: str, drop: str, expected: str) -> None:
    assert edited(line, ((drop,),), ()) == expected


WORDS = st.text("abc=,.-01", min_size=1, max_size=6)
LINES = st.lists(st.one_of(WORDS, st.sampled_from([" ", "  ", "\t", 'x="y z"'])), max_size=8).map(" ".join)
OURS = st.lists(
    st.sampled_from([("isolcpus=4-7",), ("nohz_full=4-7",), ("iommu=pt",), ("hugepagesz=1G", "hugepages=64")]),
    unique=True,
).map(tuple)


@given(LINES, OURS)
def test_what_was_added_comes_out_without_a_trace(line: str, ours: tuple[tuple[str, ...], ...]) -> None:
    added = edited(line, (), ours)
    assert lacking(added, ours) == ()
    assert added.startswith(line)
    assert edited(added, tuple(reversed(ours)), ()) == line


@given(LINES, OURS, OURS)
def test_two_units_do_not_disturb_each_other(
    line: str, first: tuple[tuple[str, ...], ...], second: tuple[tuple[str, ...], ...]
) -> None:
    second = tuple(group for group in second if group not in first)
    both = edited(edited(line, (), first), (), second)
    assert lacking(edited(both, first, ()), second) == ()
