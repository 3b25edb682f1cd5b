# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Canonical JSON: the one text of a value, so that who signs it and who verifies it mean the same bytes."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 64  # what no value of ours comes near; further down, readers differ in where they give up


def canonical(value: Any) -> str:
    """The canonical text: keys sorted by code point, no white space, integers the only numbers, fit for UTF-8.

    Raises ValueError for what has no such text: a fraction, a key that is no string, half of a surrogate pair; and for
    what is nested deeper than DEEPEST. A text is not told, since it may be a secret.
    """
    _check(value, DEEPEST)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def parse(data: bytes) -> Any:
    """The value of a canonical text.

    Raises ValueError for any other: a key twice, a fraction, NaN, white space, something behind it, another order of
    the keys, a character escaped that need not be, bytes that are not UTF-8.
    """
    from .wire import once

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=once)
        same = canonical(value).encode() == data
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None
    if not same:
        raise ValueError("it is JSON, and not in the canonical form (sorted keys, no white space, integers only)")
    return value


def _check(value: Any, levels: int) -> None:
    if levels < 1 and isinstance(value, (dict, list, tuple)):
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"canonical JSON has strings for keys, not {key!r}")
            _check(key, levels)
            _check(item, levels - 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check(item, levels - 1)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("canonical JSON is UTF-8, in which half a character has no bytes") from None
    elif value is not None and not isinstance(value, int):  # a bool is an int
        raise ValueError(f"canonical JSON has no {type(value).__name__}: {value!r}")
