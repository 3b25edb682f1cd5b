# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters as values: their names and paths, when two texts are one value, and the files that set them.

What the unit sysctl may be asked for, and what it does about it, is in `sysctl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .files import HEADER

ROOT = "/proc/sys"
NAME = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)+")
LATER = "{file} sets {name} = {value} after {ours}, and wins at a boot until the next pass: take it out of there"
PLAIN_FILE = "{file} sets {name} = {value}, and wins whenever sysctl --system reads it: take it out of there"
UNREAD = "{file} cannot be read: whether it sets a parameter to another value than {ours} is not known"


class Key(NamedTuple):
    """A parameter and its value as text. `name` is in the one form that we write, whatever form was given."""

    name: str  # "net.ipv4.conf.eth0/100.forwarding"
    path: str  # "/proc/sys/net/ipv4/conf/eth0.100/forwarding"
    value: str


class Live(NamedTuple):
    """What the kernel shows for a parameter that it has; `text` is None where not even root can read it."""

    text: str | None
    fault: str = ""


class Rival(NamedTuple):
    """Another file that sets parameters of ours at a boot, after our file; `values` by path, None when unreadable."""

    file: str
    values: Mapping[str, str] | None


# -- names and values


def parts_of(name: str) -> tuple[str, ...]:
    """The path parts below /proc/sys, as sysctl.d(5) and sysctl(8) read a name.

    Where the first separator is a dot, dots separate and a slash stands for a dot inside a part
    ("net.ipv4.conf.eth0/100.forwarding"); where it is a slash, slashes separate and dots are plain.
    """
    first = re.search(r"[./]", name)
    if first and first.group() == "/":
        return tuple(name.split("/"))
    return tuple(part.replace("/", ".") for part in name.split("."))


def plain(value: str) -> str:
    """White space collapsed: the kernel separates the values of one parameter by tabs."""
    return " ".join(value.split())


def shortened(value: str) -> str:
    """A value for a sentence."""
    return value if len(value) <= 80 else value[:77] + "..."


# -- comparing


def same(asked: str, shown: str) -> bool:
    """Whether the kernel's text means the value: 0x10 is 16 to it, and lists of numbers come back as ranges."""
    pairs = list(zip(asked.split(), shown.split()))
    if len(asked.split()) != len(shown.split()):
        return False
    return all(one == other or _number(one) == other or _is_list(one, other) for one, other in pairs)


def _number(word: str) -> str | None:
    """The number as the kernel reads it, 0x for hexadecimal and 0 for octal, in decimal."""
    for pattern, base in ((r"0[xX][0-9a-fA-F]{1,16}", 16), (r"0[0-7]{1,22}", 8)):
        if re.fullmatch(pattern, word):
            return str(int(word, base))
    return None


def _is_list(asked: str, shown: str) -> bool:
    ranges = _ranges(asked) if {",", "-"} & set(asked) else None
    return ranges is not None and ranges == _ranges(shown)


def _ranges(word: str) -> list[tuple[int, int]] | None:
    """ "8080,8081,9000" as joined ranges, None for what is no such list."""
    if not re.fullmatch(r"[0-9]{1,10}(-[0-9]{1,10})?(,[0-9]{1,10}(-[0-9]{1,10})?)*", word):
        return None
    joined: list[tuple[int, int]] = []
    for first, last in sorted(
        (int(one), int(other or one)) for one, _dash, other in (item.partition("-") for item in word.split(","))
    ):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


# -- files


def render(keys: Iterable[Key]) -> str:
    """sysctl.d: one `name = value` line per key, sorted; a dot inside a part of a name is written as a slash."""
    return HEADER + "".join(f"{key.name} = {key.value}".rstrip() + "\n" for key in keys)


def parse_file(text: str) -> dict[str, str]:
    """A sysctl.d file as values by path; of a name that comes twice the last counts.

    Patterns are left out: a name that a file spells out outranks them, wherever they stand.
    """
    values: dict[str, str] = {}
    for raw in text.splitlines():
        name, equals, value = raw.strip().partition("=")
        name = name.strip().lstrip("-").strip()
        if equals and not raw.strip().startswith(("#", ";")) and NAME.fullmatch(name):
            values["/".join((ROOT, *parts_of(name)))] = plain(value)
    return values


def rival_notes(keys: Iterable[Key], rivals: Iterable[Rival], ours: str) -> list[str]:
    """Who else sets our keys, where the last file to do so sets another value; `ours`: the file that has them."""
    rivals = tuple(rivals)
    notes = [UNREAD.format(file=rival.file, ours=ours) for rival in rivals if rival.values is None]
    for key in keys:
        others = [
            (rival.file, rival.values[key.path])
            for rival in rivals
            if rival.values is not None and key.path in rival.values
        ]
        if others and not same(key.value, others[-1][1]):
            file, value = others[-1]
            sentence = PLAIN_FILE if file == "/etc/sysctl.conf" else LATER
            notes.append(sentence.format(file=file, name=key.name, value=shortened(value), ours=ours))
    return notes
