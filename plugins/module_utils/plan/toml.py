# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TOML as containerd, CRI-O and NVIDIA's toolkit write it: read whole, or refused naming file and line.

What stands plainly, a header or a key with its value a line, is read here by one pattern; a text with anything else is
left to `toml_reader`, which reads it all. `toml_text` writes and edits.
"""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    Table = dict[str, Any]
    Span = tuple[int, int]
else:
    from ..core.named import NamedTuple

    Table = dict

BARE = re.compile(r"[A-Za-z0-9_-]+")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# A string without an escape on one line, a key, and a number as most are written.
STRING = re.compile(r"""(?:"[^"\\\n]*"|'[^'\n]*')""")
KEY = re.compile(rf"(?:{BARE.pattern}|{STRING.pattern})")
NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?")
# A table's header, or a key and its value (a word, a string, or strings in brackets), or neither; perhaps a comment.
# To compile it costs a pass more than to match it: it stays small.
LINE = re.compile(
    rf"[ \t]*(?:(?:\[([^\[\]#\n]+)\]|({KEY.pattern})[ \t]*=[ \t]*"
    rf"([A-Za-z0-9.+-]+|{STRING.pattern}|\[(?:[ \t]*{STRING.pattern}[ \t]*(?:,|(?=\])))*[ \t]*\]))[ \t]*)?"
    r"(?:#.*)?(?:\n|\Z)"
)
LATELY = 16  # texts whose reading is kept: a pass asks for the same few again and again


class Document(NamedTuple):
    """A text and what it says, with where each value stands, so that it can be edited in place.

    `values` maps the full path of a key to the span of its value; `header` is where the line of the first table header
    begins, the text's length where there is none.
    """

    text: str
    table: Table
    values: dict[tuple[str, ...], Span]
    header: int


def parse(text: str, source: str) -> Table:
    """The tables and values of a text; raises Refused naming `source`, a path, and the line of what it cannot read.

    What is returned is not to be changed: the next one who asks for this text is given the same.
    """
    return document(text, source).table


@lru_cache(LATELY)
def document(text: str, source: str) -> Document:
    """As `parse`, with where the values stand."""
    found = _plain(text)
    if found is None:
        from .toml_reader import read

        return read(text, source)
    return found


def _plain(text: str) -> Document | None:
    """The document that a text of plain lines is; None where one is not plain, or is wrong."""
    if CONTROL.search(text):
        return None
    root: Table = {}
    table, header, at = root, -1, 0
    path: tuple[str, ...] = ()
    opened: set[tuple[str, ...]] = set()
    values: dict[tuple[str, ...], Span] = {}
    while at < len(text):
        line = LINE.match(text, at)
        if line is None:
            return None
        headed, key, value = line.groups()
        if headed:
            header = at if header < 0 else header
            parts = KEY.findall(headed)
            path = tuple(_word(part) for part in parts)
            below = None if ".".join(parts) != headed or path in opened else _below(root, path)
            if below is None:
                return None
            opened.add(path)
            table = below
        elif key:
            word = _word(key)
            found = _value(value)
            if found is None or word in table:
                return None
            table[word] = found
            place = (*path, word)
            values[place] = line.span(3)
        at = line.end()
    return Document(text, root, values, len(text) if header < 0 else header)


def _below(table: Table, path: tuple[str, ...]) -> Table | None:
    """The table at a path, made where it is not there; None where a value is in its way."""
    for word in path:
        below: Any = table.setdefault(word, {})
        if not isinstance(below, dict):
            return None
        table = below
    return table


def _word(key: str) -> str:
    return key[1:-1] if key[0] in "\"'" else key


def _value(text: str) -> Any:
    """A value; None for a word that is none of the plain ones."""
    first = text[0]
    if first in "\"'":
        return text[1:-1]
    if first == "[":
        return [string[1:-1] for string in STRING.findall(text)]
    if text in ("true", "false"):
        return text == "true"
    if not NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)
