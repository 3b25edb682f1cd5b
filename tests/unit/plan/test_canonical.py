# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One text a value: what is signed here is verified elsewhere, byte by byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.canonical import canonical, parse

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inside: st.lists(inside) | st.dictionaries(TEXT, inside),
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"b": 1, "a": [True, False, None]}, '{"a":[true,false,null],"b":1}'),
        ({"a": {"z": 0, "y": -7}}, '{"a":{"y":-7,"z":0}}'),
        ({"node": "größe/1", "é": "\u2028"}, '{"node":"größe/1","é":"\u2028"}'),  # itself, not its escape
        ('a"\\\n\t\x00', '"a\\"\\\\\\n\\t\\u0000"'),
        (("x", 2**70), '["x",1180591620717411303424]'),
        # By code point, which is the order of the UTF-8 bytes: "￿" (U+FFFF) before "𐀀" (U+10000).
        ({"\U00010000": 1, "\uffff": 2, "a": 3}, '{"a":3,"\uffff":2,"\U00010000":1}'),
    ],
)
def test_the_text_of_a_value(value: Any, text: str) -> None:
    assert canonical(value) == text


@pytest.mark.parametrize(
    "value",
    [1.0, float("nan"), {"a": [0.5]}, {1: "a"}, {None: 1}, {"a": b"bytes"}, {"\udc80": 1}, ["\ud800"], {"a": {1}}],
)
def test_what_has_no_canonical_text_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="canonical JSON"):
        canonical(value)


def test_a_text_that_has_no_bytes_is_not_told() -> None:
    """It may be a secret: a line of an allocation's environment."""
    for value in (["TOKEN=hunter2\udcff"], {"hunter2\udcff": 1}):
        with pytest.raises(ValueError, match=r"^canonical JSON is UTF-8, in which half a character has no bytes$"):
            canonical(value)


def test_how_deep_a_value_may_be() -> None:
    for opens, closes in (("[", "]"), ('{"a":', "}")):
        text = opens * 64 + "7" + closes * 64
        assert canonical(parse(text.encode())) == text
        for inside in ("7", "[]"):
            deeper = opens * 65 + inside + closes * 65
            with pytest.raises(ValueError, match=r"^it is nested deeper than 64 levels$"):
                parse(deeper.encode())
            with pytest.raises(ValueError, match=r"^it is nested deeper than 64 levels$"):
                canonical(json.loads(deeper))


@given(VALUES)
def test_the_text_means_the_value_and_the_order_of_keys_does_not_matter(value: Any) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(_turned(value)) == text
    assert text.encode().decode() == text


def _turned(value: Any) -> Any:
    """The value with the keys of every mapping in the opposite order."""
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return [_turned(item) for item in value] if isinstance(value, list) else value
