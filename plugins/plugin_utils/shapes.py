# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data from elsewhere, held to a shape: what a host returned counts only as far as a module of ours returns such.

A shape is TEXT, NUMBER (a whole one, of 64 bits at most) or TRUTH, a mapping of keys to shapes (other keys are dropped,
and all of these are there), or one of the classes below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

TEXT, NUMBER, TRUTH = "text", "number", "truth"
TOO_LARGE = 1 << 64  # nothing that is counted on a host; such a number is no float either, which a scale needs


class Maybe(NamedTuple):
    """A value, or None for what has another shape."""

    shape: Any


class Each(NamedTuple):
    """A list, without the entries that have another shape."""

    shape: Any


class ByName(NamedTuple):
    """A mapping from texts, sorted by them, without the values that have another shape."""

    shape: Any


class Misfit(ValueError):
    """The value has another shape."""


def fit(value: Any, shape: Any) -> Any:
    """The value in that shape, of plain types; raises Misfit."""
    if isinstance(shape, Maybe):
        return maybe(value, shape.shape)
    if isinstance(shape, Each):
        return [found for each in _list(value) for found in _fitting(each, shape.shape)]
    if isinstance(shape, ByName):
        pairs = ((text(name), each) for name, each in sorted(_mapping(value).items(), key=_name))
        return {name: found for name, each in pairs for found in _fitting(each, shape.shape)}
    if isinstance(shape, Mapping):
        given = _mapping(value)
        return {key: fit(given.get(key), each) for key, each in shape.items()}
    return _scalar(value, shape)


def maybe(value: Any, shape: Any) -> Any:
    """The value in that shape; None for what has another."""
    found = () if value is None else _fitting(value, shape)
    return found[0] if found else None


def text(value: Any) -> str:
    """As text that can be written as UTF-8: a byte that was none shows as a replacement character."""
    return "" if value is None else re.sub("[\ud800-\udfff]", "\ufffd", str(value))


def _fitting(value: Any, shape: Any) -> tuple[Any, ...]:
    try:
        return (fit(value, shape),)
    except Misfit:
        return ()


def _scalar(value: Any, shape: str) -> Any:
    if shape == TEXT and isinstance(value, str):
        return text(value)
    if shape == NUMBER and isinstance(value, int) and not isinstance(value, bool) and abs(value) < TOO_LARGE:
        return int(value)
    if shape == TRUTH and isinstance(value, bool):
        return bool(value)
    raise Misfit


def _list(value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise Misfit
    return list(value)


def _mapping(value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise Misfit
    return value


def _name(pair: tuple[Any, Any]) -> str:
    return text(pair[0])
