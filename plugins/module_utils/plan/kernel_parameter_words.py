# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When two words of a kernel parameter that differ are one value."""

from __future__ import annotations

import re


def is_same(asked: str, shown: str) -> bool:
    """Whether the kernel's word means the one that is asked for, as 16 means 0x10, and 1-2 means 1,2."""
    return asked == shown or _number(asked) == shown or _is_list(asked, shown)


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
