# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The swap lines of /etc/fstab: what they name, commented in a way of ours, and taken back to the byte."""

from __future__ import annotations

import re
from collections.abc import Collection

from .fstab import MARK, starts_swap, swap_lines

BY = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel"}


def sources(text: str) -> tuple[str, ...]:
    """What the swap lines name: a path, UUID=..., LABEL=..."""
    return tuple(plain(line.split()[0]) for line in swap_lines(text))


def nodes(text: str) -> tuple[str, ...]:
    """The same as paths: udev has a link for each UUID=... or LABEL=..."""
    found = (source.partition("=") for source in sources(text))
    return tuple(f"/dev/disk/{BY[kind]}/{value.strip(chr(34))}" if kind in BY else kind for kind, _is, value in found)


def plain(field: str) -> str:
    """A field of fstab, /proc/swaps or mountinfo, where a blank, and a few signs more, are octal: "/my\\040swap"."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), field)


def turned_off(text: str) -> str:
    """The text with those lines commented."""
    return "\n".join(MARK + line if starts_swap(line) else line for line in text.split("\n"))


def turned_on(text: str, lines: Collection[str]) -> str:
    """The text with those of `lines` that still are as we commented them as they were before."""
    return "\n".join(
        line[len(MARK) :] if line.startswith(MARK) and line[len(MARK) :] in lines else line for line in text.split("\n")
    )


def left_off(text: str) -> int:
    """How many lines have our comment."""
    return sum(line.startswith(MARK.rstrip()) for line in text.split("\n"))
