# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TOML written: whole files of ours, and single top-level keys in files of others, the rest kept byte for byte."""

from __future__ import annotations

import re

from .toml import BARE, document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .toml import Table

INDENT = "  "
SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
TO_ESCAPE = re.compile(r'[\x00-\x1f\x7f"\\]')


def render(table: Table) -> str:
    """A whole file: values first, then the tables below, each indented by its depth."""
    return "".join(f"{line}\n" for line in _lines(table, ())).lstrip("\n")


def _lines(table: Table, path: tuple[str, ...]) -> list[str]:
    deep = INDENT * max(0, len(path) - 1)
    inner = INDENT * len(path)
    lines = []
    for name, value in table.items():
        if not _is_below(value):
            lines.append(f"{inner}{_key(name)} = {value_text(value)}")
    for name, value in table.items():
        below = (*path, name)
        header = ".".join(_key(word) for word in below)
        deep = INDENT * (len(below) - 1)
        if isinstance(value, dict):
            lines += ["", f"{deep}[{header}]", *_lines(value, below)]
        elif _is_below(value):
            for element in value:
                lines += ["", f"{deep}[[{header}]]", *_lines(element, below)]
    return lines


def _is_below(value: Any) -> bool:
    """Whether the value is written as a table of its own, or as several."""
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(element, dict) for element in value)


def value_text(value: Any) -> str:
    """One value on one line; a mapping as an inline table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if "e" not in repr(value) or "." in repr(value) else repr(value).replace("e", ".0e")
    if isinstance(value, str):
        return f'"{TO_ESCAPE.sub(lambda found: _escape(found.group()), value)}"'
    if isinstance(value, list):
        return f"[{', '.join(value_text(element) for element in value)}]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(name)} = {value_text(inner)}" for name, inner in value.items())
        return f"{{{pairs}}}"
    raise TypeError(f"{value!r} is no value of TOML")


def _escape(character: str) -> str:
    return SHORT.get(character, f"\\u{ord(character):04X}")


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else value_text(name)


def with_key(text: str, key: str, value: Any, source: str) -> str:
    """The text with a bare top-level key set, everything else as it was.

    A key that is there gets the new value in its place. One that is commented out keeps its comment and comes on the
    line below; any other comes before the first table. Raises Refused naming `source` and line for a text that is no
    TOML.
    """
    seen = document(text, source)
    span = seen.values.get((key,))
    if span:
        return text[: span[0]] + value_text(value) + text[span[1] :]
    line = f"{key} = {value_text(value)}\n"
    top = text[: seen.header]
    comment = re.search(rf"^[ \t]*#[ \t]*{re.escape(key)}[ \t]*=.*(?:\n|\Z)", top, re.MULTILINE)
    at = comment.end() if comment and _between_values(seen.values.values(), comment.start()) else len(top)
    before = text[:at]
    if before and not before.endswith("\n"):
        before += "\n"
    if at == len(top) and at < len(text) and before.endswith("\n\n"):
        return before[:-1] + line + "\n" + text[at:]
    return before + line + text[at:]


def _between_values(spans: Any, at: int) -> bool:
    """Whether a place is in none of the values: a string of several lines may hold what looks like a comment."""
    return not any(start <= at < end for start, end in spans)
