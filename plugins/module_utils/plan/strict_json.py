# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON from somebody who may mean harm: one value, one meaning, and no more work than its bytes are worth."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from .wire import once

DEEPEST = 64  # objects and lists inside each other
LONGEST_NUMBER = 40  # characters: all that is counted has less
LONGEST_SHOWN = 80  # characters of what is wrong, in a message


def parse(data: bytes) -> Any:
    """The one value in the bytes; raises ValueError with a clause.

    For a key that is there twice, something behind the value, NaN, numbers that no one counts to, half a character, and
    what is nested too deeply: a walk over what is returned needs no guard of its own.
    """
    try:
        found = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=once,
            parse_constant=_no_number,
            parse_int=_whole,
            parse_float=_fraction,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as fault:
        raise ValueError(short(str(fault))) from None
    _measure(found)
    return found


def short(text: str) -> str:
    """A text of somebody else's for a message: printable, and not long."""
    plain = "".join(character if character.isprintable() else "?" for character in text[: LONGEST_SHOWN + 1])
    return plain if len(plain) <= LONGEST_SHOWN else plain[:LONGEST_SHOWN] + "..."


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:  # to read one of millions takes minutes
        raise ValueError(f"it has a number of {len(digits)} characters")
    return int(digits)


def _fraction(digits: str) -> float:
    if len(digits) > LONGEST_NUMBER or abs(float(digits)) == float("inf"):
        raise ValueError("it has a number that is too large or too exact")
    return float(digits)


def _measure(value: Any) -> None:
    """Raise ValueError for what is nested too deeply, and for half of a surrogate pair, which no file can hold."""
    level = [value]
    for _depth in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _encode(item)
            elif isinstance(item, dict):
                below += [*item, *item.values()]
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise ValueError("it is nested too deeply")


def _encode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it has half a character, which no file in UTF-8 can hold") from None
