# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of root's configuration, which is TOML, as far as our configuration uses it."""

from __future__ import annotations

from ..core.errors import Refused
from .installed import CONFIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    Scalar = Union[str, int, bool]
    Found = tuple[Scalar, int]  # a value, and where what follows it begins

DIGITS = frozenset("0123456789")
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") | DIGITS
LONGEST = 18  # digits of an integer


def parse_config(text: str) -> dict[str, dict[str, Scalar]]:
    """The TOML that our configuration uses: tables of strings, integers and booleans; keys before a table are in "".

    Raises Refused naming the line for anything else, so that nothing is half understood. It is read on every pass,
    which is why no pattern is compiled for it.
    """
    tables: dict[str, dict[str, Scalar]] = {"": {}}
    here = tables[""]
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, value, end = _table(line) if line.startswith("[") else _pair(line)
        rest = line[end:].strip()
        if not name or (rest and not rest.startswith("#")) or name in (tables if value is None else here):
            raise Refused(
                f"{CONFIG} line {number}: {raw.strip()!r} is no table, no single key = value, or is given twice: "
                "correct it"
            )
        if value is None:
            here = tables.setdefault(name, {})
        else:
            here[name] = value
    return tables


def _table(line: str) -> tuple[str, None, int]:
    """The name of the table that begins here, "" for none, and where what follows begins."""
    name, bracket, _rest = line[1:].partition("]")
    bare = name.strip()
    return (bare, None, len(name) + 2) if bracket and set(bare) <= LETTERS | {"."} else ("", None, 0)


def _pair(line: str) -> tuple[str, Scalar | None, int]:
    """A key with its value, and where what follows begins; "" for none."""
    key, sign, behind = line.partition("=")
    text = behind.lstrip()
    name = key.rstrip()
    found = _value(text) if sign and set(name) <= LETTERS else None
    return ("", None, 0) if found is None else (name, found[0], len(line) - len(text) + found[1])


def _value(text: str) -> Found | None:
    """The value at the beginning of the text; None for none."""
    if text.startswith('"'):
        return _quoted(text)
    if text.startswith("'"):
        end = text.find("'", 1)
        return None if end < 0 else (text[1:end], end + 1)
    for word in ("true", "false"):
        if text.startswith(word):
            behind = text[len(word) : len(word) + 1]
            return None if behind.isalnum() or behind == "_" else (word == "true", len(word))
    at = start = 1 if text[:1] in ("+", "-") else 0
    while text[at : at + 1] in DIGITS:
        at += 1
    return (int(text[:at]), at) if 1 <= at - start <= LONGEST else None


def _quoted(text: str) -> Found | None:
    """A string in double quotes, in which a backslash stands before a quote or a backslash alone."""
    found, at = "", 1
    while at < len(text):
        if text[at] == '"':
            return found, at + 1
        if text[at] == "\\":
            at += 1
            if text[at : at + 1] not in ('"', "\\"):
                return None
        found += text[at]
        at += 1
    return None
