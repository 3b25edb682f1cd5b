# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of TOML 1.0 except dates and times, which none of the files that we read has; refused naming file and line.

Python 3.9, which hosts may run, has no reader of its own. Most files are plain enough for `toml`, which asks this one
for what is not.
"""

from __future__ import annotations

import re

from ..core.errors import Refused
from .toml import BARE, Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .toml import Span, Table

BLANK = re.compile(r"[ \t]*")
COMMENT = re.compile(r"#[^\x00-\x08\x0a-\x1f\x7f]*")
BETWEEN = re.compile(r"(?:[ \t]|\r?\n|#[^\x00-\x08\x0a-\x1f\x7f]*(?=\r?\n))*")  # in an array
LITERAL = re.compile(r"'([^'\x00-\x08\x0a-\x1f\x7f]*)'")
# Patterns of what is rare are compiled when they are met.
LONG_LITERAL = r"'''(?:\r?\n)?((?:[^'\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]|'{1,2}(?!'))*'{0,2}?)'''(?!')"
BASIC = re.compile(r'"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\.)*)"')
LONG_BASIC = r'"""(?:\r?\n)?((?:[^"\\\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]|\\(?:.|\r?\n)|"{1,2}(?!"))*"{0,2}?)"""(?!")'
STRINGS: dict[str, Any] = {'"""': LONG_BASIC, "'''": LONG_LITERAL, '"': BASIC, "'": LITERAL}  # by how they begin
ESCAPE = re.compile(r"\\(?:[ \t]*\r?\n[ \t\r\n]*|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
WORD = re.compile(r"[A-Za-z0-9_.:+-]+")
DECIMAL = r"(?:0|[1-9](?:_?[0-9])*)"
INTEGER = re.compile(rf"[+-]?{DECIMAL}")
BASED = r"0(?:x[0-9a-fA-F](?:_?[0-9a-fA-F])*|o[0-7](?:_?[0-7])*|b[01](?:_?[01])*)"
DIGITS = r"[0-9](?:_?[0-9])*"
FLOAT = rf"[+-]?(?:{DECIMAL}(?:\.{DIGITS})?(?:[eE][+-]?{DIGITS})?|inf|nan)"
DEPTH = 100  # of arrays and inline tables


def read(text: str, source: str) -> Document:
    """The document that a text is; raises Refused naming `source`, a path, and the line of what it cannot read."""
    return _Reader(text, source).document()


class _Reader:
    """One reading. Tables that may not be extended any more are known by their identity."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.at = 0
        self.root: Table = {}
        self.named: set[int] = set()  # tables that a header has opened: never twice
        self.dotted: set[int] = set()  # tables that a dotted key has made: no header opens them
        self.closed: set[int] = set()  # inline tables and arrays: as they are
        self.here: tuple[str, ...] = ()
        self.values: dict[tuple[str, ...], Span] = {}

    def document(self) -> Document:
        if self.text.startswith("\ufeff"):
            self._fail("it begins with a byte order mark (U+FEFF), which not everything that reads it skips")
        table, header = self.root, -1
        while self.at < len(self.text):
            start = self.at
            self._skip(BLANK)
            if self.text.startswith("[", self.at):
                header = start if header < 0 else header
                table = self._header()
            elif not self._at_end_of_line():
                self._pair(table, self.here)
            self._end_of_line()
        return Document(self.text, self.root, self.values, len(self.text) if header < 0 else header)

    def _fail(self, what: str, at: int | None = None) -> NoReturn:
        line = self.text.count("\n", 0, self.at if at is None else at) + 1
        raise Refused(f"{self.source} line {line}: {what}: correct it")

    # -- lines

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _at_end_of_line(self) -> bool:
        return self.at >= len(self.text) or self.text[self.at] in "#\n" or self.text.startswith("\r\n", self.at)

    def _end_of_line(self) -> None:
        self._skip(BLANK)
        self._skip(COMMENT)
        if self.text.startswith("\r\n", self.at):
            self.at += 2
        elif self.text.startswith("\n", self.at):
            self.at += 1
        elif self.at < len(self.text):
            self._fail(f"{self._rest()!r} is out of place")

    def _rest(self) -> str:
        return self.text[self.at :].split("\n", 1)[0][:60]

    # -- tables

    def _header(self) -> Table:
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        path = self._key()
        if not self.text.startswith("]]" if many else "]", self.at):
            self._fail("a table's name does not end")
        self.at += 2 if many else 1
        self.here = path
        above = self.root
        for word in path[:-1]:
            above = self._into(above, word)
        return self._element(above, path[-1]) if many else self._opened(above, path[-1])

    def _into(self, table: Table, word: str) -> Table:
        """The table below, the last one of an array of tables; made where it is not there."""
        below = table.setdefault(word, {})
        if isinstance(below, list) and below and id(below) not in self.closed:
            below = below[-1]
        if not isinstance(below, dict) or id(below) in self.closed:
            self._fail(f"{word} is a value, and no table below it can be named")
        return below

    def _opened(self, above: Table, word: str) -> Table:
        below = above.setdefault(word, {})
        if not isinstance(below, dict) or id(below) in self.named | self.dotted | self.closed:
            self._fail(f"{word} is given twice")
        self.named.add(id(below))
        return below

    def _element(self, above: Table, word: str) -> Table:
        many = above.setdefault(word, [])
        if not isinstance(many, list) or id(many) in self.closed:
            self._fail(f"{word} is given twice")
        fresh: Table = {}
        many.append(fresh)
        self.named.add(id(fresh))
        return fresh

    # -- keys and values

    def _key(self) -> tuple[str, ...]:
        words = []
        while True:
            self._skip(BLANK)
            bare = BARE.match(self.text, self.at)
            if bare:
                words.append(bare.group())
                self.at = bare.end()
            elif self.text.startswith(('"', "'"), self.at) and not self.text.startswith(('"""', "'''"), self.at):
                words.append(self._string())
            else:
                self._fail(f"{self._rest()!r} is no key")
            self._skip(BLANK)
            if not self.text.startswith(".", self.at):
                return tuple(words)
            self.at += 1

    def _pair(self, table: Table, above: tuple[str, ...], inline: bool = False, depth: int = 0) -> None:
        path = self._key()
        if not self.text.startswith("=", self.at):
            self._fail(f"{'.'.join(path)} has no = and value")
        for word in path[:-1]:
            if word not in table:
                table[word] = {}
                self.dotted.add(id(table[word]))
            below: Any = table[word]
            if not isinstance(below, dict) or id(below) not in self.dotted or id(below) in self.closed:
                self._fail(f"{word} is given twice")
            table = below
        if path[-1] in table:
            self._fail(f"{'.'.join(path)} is given twice")
        self.at += 1
        self._skip(BLANK)
        start = self.at
        table[path[-1]] = self._value(depth)
        if not inline:
            self.values[above + path] = (start, self.at)

    def _value(self, depth: int) -> Any:
        if depth > DEPTH:
            self._fail("values are nested too deep")
        first = self.text[self.at : self.at + 1]
        if first in ('"', "'"):
            return self._string()
        if first == "[":
            return self._array(depth)
        if first == "{":
            return self._inline(depth)
        word = WORD.match(self.text, self.at)
        if not word:
            self._fail("a value is missing")
        value = _scalar(word.group())
        if value is None:
            self._fail(f"{word.group()!r} is no value that is known here (a string needs quotes)")
        self.at = word.end()
        return value

    def _string(self) -> str:
        start = self.at
        mark = next(mark for mark in STRINGS if self.text.startswith(mark, start))
        found = re.compile(STRINGS[mark]).match(self.text, start)
        if not found:
            self._fail("a string does not end")
        self.at = found.end()
        inside = found.group(1)
        if len(mark) == 3:
            inside = inside.replace("\r\n", "\n")
        if "\r" in inside:
            self._fail("a string holds a bare carriage return", start)
        return inside if "'" in mark else ESCAPE.sub(lambda word: self._escaped(word.group(), start), inside)

    def _escaped(self, word: str, at: int) -> str:
        if word[1] in " \t\r\n" and "\n" in word:
            return ""
        if word[1] in "uU" and len(word) > 2:
            code = int(f"0x{word[2:]}", 0)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                self._fail(f"{word} is no character", at)
            return chr(code)
        if word[1] not in ESCAPES:
            self._fail(f"{word!r} is no escape", at)
        return ESCAPES[word[1]]

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.closed.add(id(found))
        self.at += 1
        while True:
            self._skip(BETWEEN)
            if self.text.startswith("]", self.at):
                self.at += 1
                return found
            found.append(self._value(depth + 1))
            self._skip(BETWEEN)
            if self.text.startswith(",", self.at):
                self.at += 1
            elif not self.text.startswith("]", self.at):
                self._fail("a list does not end, or lacks a comma")

    def _inline(self, depth: int) -> Table:
        found: Table = {}
        self.at += 1
        self._skip(BLANK)
        while not self.text.startswith("}", self.at):
            self._pair(found, (), inline=True, depth=depth + 1)
            self._skip(BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
                self._skip(BLANK)
                if self.text.startswith("}", self.at):
                    self._fail("a comma ends an inline table")
            elif not self.text.startswith("}", self.at):
                self._fail("an inline table does not end on its line, or lacks a comma")
        self.at += 1
        self.closed.update(id(table) for table in _tables(found))
        return found


def _tables(table: Table) -> list[Table]:
    """The table and those below it."""
    below = [inner for value in table.values() if isinstance(value, dict) for inner in _tables(value)]
    return [table, *below]


def _scalar(word: str) -> Any:
    """A boolean, an integer or a float; None for anything else."""
    if word in ("true", "false"):
        return word == "true"
    if INTEGER.fullmatch(word):
        return int(word.replace("_", ""))
    if re.fullmatch(BASED, word):
        return int(word.replace("_", ""), 0)
    if re.fullmatch(FLOAT, word):
        return float(word.replace("_", ""))
    return None
