# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of root's configuration, which is TOML, as far as our configuration uses it."""

from __future__ import annotations

import re
from typing import Union

from ..core.errors import Refused
from .installed import CONFIG

Scalar = Union[str, int, bool]
TABLE = re.compile(r"\[\s*([A-Za-z0-9_.-]+)\s*\]")
PAIR = re.compile(
    r"""([A-Za-z0-9_-]+)\s*=\s*("(?:[^"\\]|\\["\\])*"|'[^']*'|true\b|false\b|[+-]?[0-9]{1,18}(?![0-9]))"""
)


def parse_config(text: str) -> dict[str, dict[str, Scalar]]:
    """The TOML that our configuration uses: tables of strings, integers and booleans; keys before a table are in "".

    Raises Refused naming the line for anything else, so that nothing is half understood.
    """
    tables: dict[str, dict[str, Scalar]] = {"": {}}
    here = tables[""]
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        table = TABLE.match(line)
        pair = PAIR.match(line)
        end = (table or pair).end() if table or pair else 0  # type: ignore[union-attr]
        rest = line[end:].strip()
        key = table.group(1) if table else pair.group(1) if pair else ""
        if not (table or pair) or (rest and not rest.startswith("#")) or key in (tables if table else here):
            raise Refused(
                f"{CONFIG} line {number}: {raw.strip()!r} is no table, no single key = value, or is given twice: "
                "correct it"
            )
        if table:
            here = tables.setdefault(key, {})
        elif pair:
            here[key] = _scalar(pair.group(2))
    return tables


def _scalar(text: str) -> Scalar:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("'"):
        return text[1:-1]
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return int(text)
