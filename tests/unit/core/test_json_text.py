# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reader and writer of JSON against json itself: the same values, and no text that only one of them takes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import json_text

NOTHING = object()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def said(loads: Any, text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return NOTHING


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_a_value_comes_back(value: Any, indent: int | None, ascii_alone: bool) -> None:
    assert json_text.loads(json.dumps(value, indent=indent, ensure_ascii=ascii_alone)) == value


KEYS = st.text() | st.integers() | st.floats() | st.booleans() | st.none()
ODD = st.recursive(  # all that json writes, which is more than JSON has
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@given(ODD)
def test_a_value_is_written_as_json_writes_it(value: Any) -> None:
    assert json_text.dumps(value) == json.dumps(value)


def test_what_json_does_not_write_is_refused_as_there() -> None:
    around: list[Any] = []
    around.append(around)
    for value in (b"x", {1, 2}, {(1, 2): 3}, around):
        with pytest.raises((TypeError, ValueError)) as theirs:
            json.dumps(value)
        with pytest.raises(type(theirs.value), match=re.escape(str(theirs.value))):
            json_text.dumps(value)


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \t\n\\u"\ufeff\0'))
def test_a_text_is_taken_by_both_or_by_none(text: str) -> None:
    ours, theirs = said(json_text.loads, text), said(json.loads, text)
    assert repr(ours) == repr(theirs)  # NaN is not equal to itself


@pytest.mark.parametrize(
    "text", ["", " ", "{", "[1,]", '{"a":1}x', "nul", "\ufeff{}", '"\n"', "01", "1 2", '{"a" 1}', "[1 2]", "'a'"]
)
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    assert said(json.loads, text) is NOTHING
    with pytest.raises(ValueError):  # noqa: PT011 - of json's own scanner, or ours: the message is nobody's
        json_text.loads(text)


def test_what_is_too_deep_is_said_as_json_says_it() -> None:
    for loads in (json.loads, json_text.loads):
        with pytest.raises(RecursionError):
            loads("[" * 200_000)


@pytest.mark.parametrize("text", [' {"a": [1, 2.5, null, true, "\\u00e9"]}\r\n', "NaN", "-Infinity", "0", '"x"'])
def test_without_the_accelerator_it_is_json_s_own(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = repr(json.loads(text))
    assert repr(json_text.loads(text)) == expected
    monkeypatch.setitem(__import__("sys").modules, "_json", None)
    assert repr(json_text.loads(text)) == expected
    assert json_text.dumps(json.loads(text)) == json.dumps(json.loads(text))
