# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON without the import of json: the same values and the same texts, and the same texts refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import json_text

LEAVES = some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text()
VALUES = some.recursive(
    LEAVES, lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner) | some.tuples(inner), max_leaves=20
)


@given(VALUES)
def test_values_are_written_and_read_as_json_does(value: Any) -> None:
    text = json_text.dumps(value)
    assert text == json.dumps(value)
    assert json_text.loads(text) == json.loads(text)


@given(some.text(alphabet='{}[]",:0123456789.eE+-truefalsn \\u\n\t\x00é'))
def test_a_text_is_read_or_refused_as_json_does(text: str) -> None:
    assert read(json_text.loads, text) == read(json.loads, text)


def read(loads: Callable[[str], Any], text: str) -> Any:
    """What a text says, as its own text, or that it is refused."""
    try:
        return repr(loads(text))
    except ValueError:
        return ValueError


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", {"a": object()}])
def test_what_json_has_no_form_for_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match="is not JSON serializable"):
        json_text.dumps(value)


def test_what_is_within_itself_is_not_written() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="Circular"):
        json_text.dumps(value)


def test_neither_imports_json() -> None:
    code = (
        "import sys; from ansible_collections.bettercompute.bcd.plugins.module_utils.core import json_text; "
        "json_text.loads(json_text.dumps([1])); print({'json', 're'} & set(sys.modules))"
    )
    path = next(path for path in sys.path if path and os.path.isdir(path + "/ansible_collections"))
    words = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "set()\n"
