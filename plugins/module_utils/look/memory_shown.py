# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel shows of memory, without what moves with every process: sights, for the unit hugepages."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host


def parse_total(text: str) -> int:
    """MemTotal in KiB, of /proc/meminfo or a node's meminfo; 0 where it is not shown."""
    for line in text.splitlines():
        words = line.split()
        name, *value = words[2:] if words[:1] == ["Node"] else words or [""]
        if name == "MemTotal:" and value[1:] == ["kB"] and value[0].isdecimal():
            return int(value[0])
    return 0


def total(host: Host, path: str) -> int | None:
    """MemTotal in KiB of such a file, None where there is none."""
    text = host.read(path)
    return None if text is None else parse_total(text)


def pool(host: Host, folder: str, wanted: int, may_exceed: bool) -> list[int] | None:
    """Total, free and surplus pages of a pool by its directory; None where the kernel shows none.

    Who uses pages does not count for a pool that is set to the `wanted` ones: that is [wanted, wanted, 0], also with a
    surplus where the host's pool may have one (`may_exceed`). Where none are wanted, or -1 for any number, all is told.
    """
    count = number(host, f"{folder}/nr_hugepages")
    if count is None:
        return None
    surplus = number(host, f"{folder}/surplus_hugepages") or 0
    if wanted > 0 and count - surplus == wanted and (may_exceed or not surplus):
        return [wanted, wanted, 0]
    free = number(host, f"{folder}/free_hugepages")
    return [count, count if free is None else free, surplus]


def number(host: Host, path: str) -> int | None:
    """A count of pages, None where the kernel shows none. Raises StepFailed for what is no number."""
    text = host.read(path)
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise StepFailed(f"{path} shows {text.strip()!r}, which is no number of pages: see the kernel's log")
    return int(text)


def mounted(host: Host, table: str, point: str) -> str:
    """The line of the mount that is seen at a point, the last one, in a table such as /proc/mounts; "" for none."""
    # The kernel writes blanks inside a field as \\040 and the like: any other white space is part of a name.
    lines = [line for line in (host.read(table) or "").split("\n") if line.split(" ")[1:2] == [point]]
    return lines[-1] if lines else ""
