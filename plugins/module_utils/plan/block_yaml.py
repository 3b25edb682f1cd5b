# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The block YAML that nvidia-ctk and kubeadm write: mappings and lists by indentation, scalars on one line.

That is all that a CDI specification of the vendor's and a kubeconfig need. Whatever can be read in two ways, or needs
more of YAML (flows with something in them, block texts, anchors, tags, several documents), is refused naming file and
line.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

from ..core.errors import Refused

DOUBLE = re.compile(r'"(?:[^"\\]|\\.)*"')
SINGLE = re.compile(r"'(?:[^']|'')*'")
# A plain key or text begins with no indicator, and is ended by ": " and " #".
PLAIN = re.compile(r"(?:[A-Za-z0-9_/.(<$^+~]|-(?=[^\s]))(?:[^\s:#]|:(?=\S)|(?<=\S)#|[ ]+(?=[^\s#]))*")
INTEGER = re.compile(r"0|-?[1-9][0-9]*")
# What readers of YAML 1.1 and 1.2 take for something other than a text, or not alike.
DOUBTFUL = re.compile(
    r"[-+.]?[0-9][0-9_,]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]*)?|[-+]?\.?[0-9]?[0-9_.:]*[eE]?[0-9]*|0[xob][0-9a-fA-F_]*"
    r"|[-+]?[0-9][0-9_]*(?::[0-9_.]+)+|[-+]?\.(?:inf|nan)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"
    r"|y|n|yes|no|on|off|true|false|null|~|=|<<",
    re.IGNORECASE,
)
VERSION = re.compile(r"[0-9]+(?:\.[0-9]+){2,}")  # 0.5.0 is a text to every reader
WORDS = {"true": True, "false": False, "null": None, "~": None}
ESCAPES = re.compile(r'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|.)')  # no half of a character
DEPTH = 40


class Line(NamedTuple):
    """A line with something on it: its number, its indentation, the rest without trailing blanks."""

    number: int
    indent: int
    text: str


def parse(text: str, source: str) -> Any:
    """What the document says; raises Refused naming `source`, a path, and the line of what it cannot read."""
    return _Reader(text, source).document()


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.at = 0
        self.lines: list[Line] = []
        for number, raw in enumerate(text.split("\n"), 1):
            line = raw.rstrip(" \r")
            bare = line.lstrip(" ")
            if bare == "---" and bare == line and not self.lines:
                continue
            if bare and not bare.startswith("#"):
                self.lines.append(Line(number, len(line) - len(bare), bare))
            if not line.isprintable():
                self._fail(number, "a character that nvidia-ctk does not write")

    def _fail(self, number: int, what: str) -> NoReturn:
        raise Refused(f"{self.source} line {number}: {what}: let nvidia-ctk write it again, or correct it")

    def document(self) -> Any:
        if not self.lines:
            self._fail(1, "there is nothing in it")
        found = self._block(self.lines[0].indent, 0)
        if self.at < len(self.lines):
            self._fail(self.lines[self.at].number, f"{self.lines[self.at].text[:60]!r} is out of place")
        return found

    def _block(self, indent: int, depth: int) -> Any:
        line = self.lines[self.at]
        if depth > DEPTH:
            self._fail(line.number, "it is nested too deep")
        if line.text == "-" or line.text.startswith("- "):
            return self._list(indent, depth)
        return self._mapping(indent, depth)

    def _list(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.indent != indent or not (line.text == "-" or line.text.startswith("- ")):
                break
            rest = line.text[1:].lstrip(" ")
            if not rest:
                self._fail(line.number, "a list's element is empty")
            inner = indent + len(line.text) - len(rest)
            if rest.startswith("- ") or self._pair(rest) is not None:
                self.lines[self.at] = Line(line.number, inner, rest)
                found.append(self._block(inner, depth + 1))
            else:
                self.at += 1
                found.append(self._scalar(rest, line.number))
        return found

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.at < len(self.lines) and self.lines[self.at].indent == indent:
            line = self.lines[self.at]
            pair = self._pair(line.text)
            if pair is None:
                self._fail(line.number, f"{line.text[:60]!r} is no key with a value")
            key, rest = self._scalar(pair[0], line.number), pair[1]
            if not isinstance(key, str) or key in found:
                self._fail(line.number, f"the key {pair[0]} is no text, or is there twice")
            self.at += 1
            found[key] = self._scalar(rest, line.number) if rest else self._below(line, depth)
        return found

    def _below(self, above: Line, depth: int) -> Any:
        """What stands on the lines below a key: a list may begin at the key's own column; nothing is null."""
        following = self.lines[self.at] if self.at < len(self.lines) else None
        if following is None or following.indent < above.indent:
            return None
        if following.indent > above.indent:
            return self._block(following.indent, depth + 1)
        return self._list(following.indent, depth + 1) if following.text.startswith("- ") else None

    def _pair(self, text: str) -> tuple[str, str] | None:
        """A key and the rest of its line, None when the text is no `key: ...`."""
        pattern = DOUBLE if text[:1] == '"' else SINGLE if text[:1] == "'" else PLAIN
        key = pattern.match(text)
        rest = text[key.end() :] if key else ""
        if key is None or not (rest == ":" or rest.startswith(": ")):
            return None
        return key.group(), rest[1:].strip(" ")

    def _scalar(self, text: str, number: int) -> Any:
        if text in ("[]", "{}"):
            return [] if text == "[]" else {}
        if DOUBLE.fullmatch(text):
            return self._quoted(text, number)
        if SINGLE.fullmatch(text):
            return text[1:-1].replace("''", "'")
        if INTEGER.fullmatch(text):
            return int(text)
        if text in WORDS:
            return WORDS[text]
        if not PLAIN.fullmatch(text) or (DOUBTFUL.fullmatch(text) and not VERSION.fullmatch(text)):
            self._fail(number, f"{text[:60]!r} can be read in more than one way, or is more than a plain value")
        return text

    def _quoted(self, text: str, number: int) -> str:
        if all(len(word) > 2 or word[1] in '"\\/bfnrt' for word in ESCAPES.findall(text)):
            try:
                return str(json.loads(text))
            except ValueError:
                pass
        return self._fail(number, f"{text[:60]} has an escape that nvidia-ctk does not write")
