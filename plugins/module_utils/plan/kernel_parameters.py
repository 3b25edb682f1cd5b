# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters as values: their names and paths, when two texts are one value, and the files that set them.

Words that differ are compared in `kernel_parameter_words`; `kernel_parameter_rivals` tells what other files undo.
What the unit sysctl may be asked for, and what it does about it, is in `sysctl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .files import HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

ROOT = "/proc/sys"
NAME = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)+")


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
    words, others = asked.split(), shown.split()
    if words == others:
        return True
    from .kernel_parameter_words import is_same

    return len(words) == len(others) and all(map(is_same, words, others))


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
