# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The language of modprobe.d: option lines, the kernel's way to show their values, and other files' lines."""

from __future__ import annotations

import re
from typing import NamedTuple

TRUE, FALSE = frozenset(("y", "1", "on", "true")), frozenset(("n", "0", "off", "false"))


class Rival(NamedTuple):
    """A line of another modprobe.d file about a module that the settings name: "options", "blacklist" or "install"."""

    path: str
    command: str
    module: str
    rest: str


def parse_options(line: str) -> tuple[tuple[str, str], ...]:
    """The pairs of "nested=1 emulate"; a bare name is a flag, "1". Quotes hold blanks together, as for modprobe."""
    words = re.findall(r'(?:[^\s"]|"[^"]*")+', line)
    pairs = (word.partition("=") for word in words)
    return tuple((key, value.replace('"', "") if equals else "1") for key, equals, value in pairs)


def same_value(wanted: str, shown: str) -> bool:
    """Whether the kernel's text means the option: Y and 1, N and 0, 0x10 and 16 are alike."""
    one, other = wanted.strip().lower(), shown.strip().lower()
    if one == other or any(one in kind and other in kind for kind in (TRUE, FALSE)):
        return True
    try:
        return int(one, 0) == int(other, 0)
    except ValueError:
        return False


def parse_modprobe(path: str, text: str) -> tuple[Rival, ...]:
    """The options, blacklist and install lines of a modprobe.d file; a backslash joins a line to the next."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split(None, 2)
        if len(words) > 1 and words[0] in ("options", "blacklist", "install"):
            rest = words[2] if len(words) > 2 else ""
            found.append(Rival(path, words[0], words[1].replace("-", "_"), rest))
    return tuple(found)
