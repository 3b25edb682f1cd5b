# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's own files, which decide what root does here: believed only where no other account could have put them there.

And what its configuration allows on this host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Union

from ..core.errors import Refused
from ..core.host import Host
from ..core.step import File
from ..plan.installed import CONFIG

if TYPE_CHECKING:
    from ..plan.pins import Pins

MEND = "make it root's, writable by no one else"
OUTSIDE = "host.unit: this host's configuration is managed outside bcd ([host] units = false in root's config.toml)"

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


def config(host: Host) -> dict[str, dict[str, Scalar]]:
    """The configuration, empty when there is none; raises Refused when another account could have written it."""
    text = root_text(host, CONFIG)
    return {"": {}} if text is None else parse_config(text)


def root_text(host: Host, path: str) -> str | None:
    """The text of a file of root's own, None when it is absent.

    Raises Refused for a file that is another's, a symbolic link or open to others' writing. And for a directory above
    it that is, where this process is root: who can write there can put another file, or none, in its place.
    """
    above = path if host.uid() == 0 else ""
    while above:
        above = above.rpartition("/")[0]
        folder = host.file(above or "/")
        if folder is not None and not only_roots(folder):
            raise Refused(
                f"{above or '/'} is not a directory only root can write, and {path} decides what root does: {MEND}"
            )
    seen = host.file(path)
    if seen is None:
        return None
    if not seen.regular or not only_roots(seen):
        raise Refused(f"{path} must be a regular file root owns that no one else can write")
    return seen.text


def only_roots(seen: File) -> bool:
    """Whether root owns it and no one else can write it; a symbolic link's mode says that anyone can."""
    return seen.uid == 0 and not seen.mode & 0o022


def refuse_if_outside(host: Host) -> None:
    """Raise Refused where root's configuration keeps us off this host."""
    units = config(host).get("host", {}).get("units", True)
    if not isinstance(units, bool):
        raise Refused(f"{CONFIG}: [host] units is {units!r}: set it to true or false")
    if not units:
        raise Refused(OUTSIDE)


def says_nothing(host: Host) -> bool:
    """Whether root's configuration is not there, or has no key: then nothing is pinned either."""
    return not any(config(host).values())


def pinned(host: Host) -> Pins:
    """Who may sign for this host; raises Refused for a pin that is malformed."""
    from ..plan.pins import pins

    return pins(config(host))
