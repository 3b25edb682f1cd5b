# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel command line as words, and edits of one that leave every foreign byte where it is.

Words belong together in groups: `hugepages=` counts pages of the size that `hugepagesz=` before it names, so the two
are one group; every other word is a group of its own. Groups are what a unit owns, looks for, adds and takes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Group = tuple[str, ...]

# A quote holds blanks together, up to its end or the line's.
WORD = re.compile(r'(?:[^\s"]|"[^"]*(?:"|$))+')


def words(line: str) -> tuple[str, ...]:
    """The arguments of a command line, in order."""
    return tuple(WORD.findall(line))


def groups(arguments: Iterable[str]) -> tuple[Group, ...]:
    """The arguments as groups, in order."""
    found: list[Group] = []
    for word in arguments:
        if word.startswith("hugepages=") and found and len(found[-1]) == 1 and found[-1][0].startswith("hugepagesz="):
            found[-1] = (*found[-1], word)
        else:
            found.append((word,))
    return tuple(found)


def flat(parts: Iterable[Group]) -> tuple[str, ...]:
    """The groups as arguments."""
    return tuple(word for part in parts for word in part)


def key(group: Group) -> str:
    """What a group sets: "isolcpus"; "hugepagesz=1G hugepages" for a pair.

    Of one key the kernel takes one: the last, or of hugepagesz= the first.
    """
    return " ".join((*group[:-1], group[-1].partition("=")[0]))


def lacking(line: str, wanted: Iterable[Group]) -> tuple[Group, ...]:
    """The groups that the command line does not have."""
    there = groups(words(line))
    return tuple(group for group in wanted if group not in there)


def rivals(line: str, wanted: Iterable[Group]) -> tuple[Group, ...]:
    """Groups of the command line that set what a wanted group sets, to something else."""
    ours = tuple(wanted)
    keys = {key(group) for group in ours}
    return tuple(dict.fromkeys(there for there in groups(words(line)) if key(there) in keys and there not in ours))


def edited(line: str, drop: Iterable[Group], add: Iterable[Group]) -> str:
    """The line without the groups of `drop` (the last of each), and with those of `add` that it lacks at its end.

    All other bytes stay, so that taking out what was added gives the line back as it was.
    """
    for group in drop:
        line = _without(line, group)
    for group in lacking(line, add):
        line = f"{line} {' '.join(group)}" if line else " ".join(group)
    return line


def _without(line: str, group: Group) -> str:
    spans = [(found.group(), *found.span()) for found in WORD.finditer(line)]
    size = len(group)
    for at in range(len(spans) - size, -1, -1):
        if tuple(word for word, _start, _end in spans[at : at + size]) == group:
            start, end = spans[at][1], spans[at + size - 1][2]
            if start:
                start -= 1
            elif end < len(line):
                end += 1
            return line[:start] + line[end:]
    return line
