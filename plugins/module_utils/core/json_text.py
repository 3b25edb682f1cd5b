# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON by what json itself reads and writes with: json's import compiles patterns for the rest."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

NAN = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
SPACE = " \t\n\r"


class _Rules:
    """How json.loads reads where it is not told otherwise."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, NAN.__getitem__


def loads(text: str) -> Any:
    """What the text says, as json.loads; raises ValueError for what is no JSON, RecursionError for what is too deep."""
    try:
        from _json import make_scanner
    except ImportError:  # a Python without its accelerator
        from json import loads as slowly

        return slowly(text)
    bare = text.strip(SPACE)
    try:
        found, end = make_scanner(_Rules)(bare, 0)  # type: ignore[arg-type]
    except StopIteration:
        raise ValueError("no JSON") from None
    if end != len(bare):
        raise ValueError("more than one value")
    return found


def dumps(value: Any) -> str:
    """The value in one line of ASCII, as json.dumps."""
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:
        from json import dumps as slowly

        return slowly(value)
    return "".join(make_encoder({}, _unknown, encode_basestring_ascii, None, ": ", ", ", False, False, True)(value, 0))


def _unknown(value: Any) -> NoReturn:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
