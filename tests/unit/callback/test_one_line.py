# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Others' text on a terminal: nothing that it obeys, and no more columns than there are."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.one_line import cells, cut, fill, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("node-1.example.com", "node-1.example.com"),
        ("\x1b[2Jgone", "?[2Jgone"),
        ("\x1b]0;title\x07x", "?]0;title?x"),
        ("\x9b31mred", "?31mred"),  # CSI as one byte of C1
        ("a\r\nb\tc", "a  b c"),
        ("abc\u202egnp", "abc?gnp"),  # the right-to-left override
        ("a\u200bb\ufeffc", "a?b?c"),
        ("byte \udcff", "byte ?"),  # of a name that is no UTF-8
        ("knoten-ü 节点 🖥", "knoten-ü 节点 🖥"),
    ],
)
def test_nothing_stays_that_a_terminal_obeys(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("节点", 4), ("🖥", 1), ("🚀", 2), ("e\u0301", 1), ("\uff46", 2), ("ñ", 1)],
)
def test_columns_are_those_of_the_standard(text: str, columns: int) -> None:
    # UAX #11: wide and full-width take two, marks on the character before none; U+1F5A5 is neutral, U+1F680 is wide.
    assert cells(text) == columns


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("hugepages", 9, "hugepages"),
        ("hugepages-of-a-node", 10, "hugepag..."),
        ("节点节点节点", 8, "节点..."),
        ("节点节点", 7, "节点..."),
        ("hugepages", 4, "huge"),
        ("hugepages", 0, ""),
        ("one two three", 8, "one t..."),
    ],
)
def test_a_text_is_cut_to_its_columns(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


@given(some.text(), some.integers(0, 90))
def test_whatever_it_is_it_fits_and_is_plain(text: str, width: int) -> None:
    shown = cut(plain(text), width)
    assert cells(shown) <= width
    assert len(shown) <= 4 * width
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in shown)
    assert cells(fill(shown, width)) == width


def test_marks_without_end_are_cut_too() -> None:
    assert len(cut("a" + "\u0301" * 100_000, 40)) <= 160
