# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU lists as the kernel writes and reads them: "4-63,68-127".

Taken are numbers, ranges, `N` for the host's last CPU, and `0-15:2/4` (of every group of 4 the first 2), as in the
kernel's own syntax; the words `all` and `none` are not, since no setting here may mean them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 8192  # the kernel's own bound of CPU numbers

ITEM = re.compile(r"(\d+|N)(?:-(\d+|N)(?::(\d+)/(\d+))?)?", re.ASCII)


def parse(text: str, last: int | None = None) -> tuple[int, ...]:
    """The CPUs of a list, sorted; empty for an empty text. `last` is what `N` stands for.

    Raises ValueError, with a clause that names the item, for what is no list, a range that runs backwards (on this
    host, where it ends in `N`), a number that no kernel has, and an `N` while `last` is None.
    """
    found: set[int] = set()
    for item in text.strip().split(",") if text.strip() else ():
        found.update(_item(item, last))
    return tuple(sorted(found))


def check_syntax(text: str) -> None:
    """Raise ValueError for a list that no host could take; what `N` is, is left open."""
    for item in text.strip().split(",") if text.strip() else ():
        first = item.partition("-")[0]
        stands_for = int(first) if first.isdecimal() and len(first) <= 4 else 0
        _item(item, stands_for)


def _item(item: str, last: int | None) -> range | tuple[int, ...]:
    match = ITEM.fullmatch(item)
    if not match:
        raise ValueError(f"{item!r} is no CPU number and no range such as 4-63")
    first = _number(match.group(1), last, item)
    end = first if match.group(2) is None else _number(match.group(2), last, item)
    if end < first:
        raise ValueError(f"the range {item} runs backwards" + (f" (N is {last} here)" if "N" in item else ""))
    if match.group(3) is None:
        return range(first, end + 1)
    used, group = int(match.group(3)), int(match.group(4))
    if not 0 < used <= group:
        raise ValueError(f"{item} takes {used} of every {group} CPUs")
    return tuple(cpu for cpu in range(first, end + 1) if (cpu - first) % group < used)


def _number(text: str, last: int | None, item: str) -> int:
    if text == "N":
        if last is None:
            raise ValueError(f"{item} ends at the last CPU, which is not known")
        return last
    if len(text) > 4 or int(text) >= MOST:
        raise ValueError(f"{item} names a CPU that no kernel has (they end at {MOST - 1})")
    return int(text)


def render(cpus: Iterable[int]) -> str:
    """The shortest list of ranges: (4, 5, 6, 9) is "4-6,9"."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
