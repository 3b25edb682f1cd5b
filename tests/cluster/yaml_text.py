# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The YAML that this project and Kubernetes' tools write, read without a library where there is none.

Maps and lists in blocks, scalars plain or quoted, and JSON anywhere. PyYAML reads it where it is installed.
"""

from __future__ import annotations

import importlib.util
import json
import re
from typing import Any

KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s:#'"\[\]{},&*!|>%@`-](?:[^:#]|:(?=\S)|(?<=\S)#)*?)\s*:(?:\s+|$)(.*)$"""
)
NUMBER = re.compile(r"[-+]?\d+")
WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


Lines = list[tuple[int, str]]  # how far each is indented, and its text


class Malformed(ValueError):
    """It is no YAML, or none that is understood here."""


def load(text: str) -> Any:
    """The first document; raises Malformed."""
    if importlib.util.find_spec("yaml"):
        import yaml

        try:
            return next(iter(yaml.safe_load_all(text)), None)
        except yaml.YAMLError as fault:
            raise Malformed(str(fault)) from None
    return plain(text)


def plain(text: str) -> Any:
    """The same without a library."""
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    lines: Lines = []
    for line in text.splitlines():
        bare = line.strip()
        if bare == "---" and lines:
            break
        if bare and not bare.startswith("#") and bare != "---":
            lines.append((len(line) - len(line.lstrip(" ")), bare))
    if not lines:
        return None
    value, rest = _block(lines, lines[0][0])
    if rest:
        raise Malformed(f"did not find expected key: {rest[0][1]}")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as fault:
        raise Malformed(f"did not find expected node content: {fault}") from None


def _block(lines: Lines, depth: int) -> tuple[Any, Lines]:
    """The value that stands at this depth, and the lines behind it."""
    if lines[0][1] == "-" or lines[0][1].startswith("- "):
        return _list(lines, depth)
    if KEY.match(lines[0][1]):
        return _map(lines, depth)
    return scalar(lines[0][1]), lines[1:]


def _list(lines: Lines, depth: int) -> tuple[list[Any], Lines]:
    found: list[Any] = []
    while lines and lines[0][0] == depth and (lines[0][1] == "-" or lines[0][1].startswith("- ")):
        inner = lines[0][1][1:].lstrip()
        lines = lines[1:]
        if inner:
            below = depth + 2
            value, lines = _block([(below, inner), *lines], below)
        else:
            value, lines = _below(lines, depth)
        found.append(value)
    return found, lines


def _map(lines: Lines, depth: int) -> tuple[dict[str, Any], Lines]:
    found: dict[str, Any] = {}
    while lines and lines[0][0] == depth:
        match = KEY.match(lines[0][1])
        if match is None:
            break
        key, given = str(scalar(match.group(1), words=False)), match.group(2).strip()
        lines = lines[1:]
        if key in found:
            raise Malformed(f'key "{key}" already set in map')
        if given and not given.startswith("#"):
            found[key] = scalar(given)
        elif lines and lines[0][0] == depth and lines[0][1].startswith("-"):
            found[key], lines = _list(lines, depth)
        else:
            found[key], lines = _below(lines, depth)
    return found, lines


def _below(lines: Lines, depth: int) -> tuple[Any, Lines]:
    if lines and lines[0][0] > depth:
        return _block(lines, lines[0][0])
    return None, lines


def scalar(text: str, words: bool = True) -> Any:
    """One value as it is written."""
    if text.startswith('"'):
        end = re.match(r'"(?:[^"\\]|\\.)*"', text)
        return _json(end.group() if end else text)
    if text.startswith("'"):
        quoted = re.match(r"'((?:[^']|'')*)'", text)
        if quoted is None:
            raise Malformed(f"found unexpected end of stream: {text}")
        return quoted.group(1).replace("''", "'")
    if text.startswith(("{", "[")):
        return _json(text)
    bare = re.split(r"\s#", text)[0].rstrip()
    if words and bare in WORDS:
        return WORDS[bare]
    return int(bare) if words and NUMBER.fullmatch(bare) else bare


def dump(value: Any, depth: int = 0) -> str:
    """Maps in blocks, sorted, as Kubernetes' tools write them; scalars and lists of scalars."""
    blank = "  " * depth
    found = ""
    for key, part in sorted(value.items()):
        if isinstance(part, dict) and part:
            found += f"{blank}{key}:\n{dump(part, depth + 1)}"
        elif isinstance(part, list) and part:
            found += f"{blank}{key}:\n" + "".join(f"{blank}- {json.dumps(one)}\n" for one in part)
        else:
            found += f"{blank}{key}: {written(part)}\n"
    return found


def written(value: Any) -> str:
    """A scalar, quoted only where it has to be."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z/][\w./:-]*", value) and value not in WORDS:
        return value
    return json.dumps(value)
