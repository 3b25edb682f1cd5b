# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of modprobe.d's files."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple


PROBE = "/etc/modprobe.d/bcd.conf"  # the file of kernel-modules


class Rival(NamedTuple):
    """A line of another modprobe.d file about a module that the settings name: "options", "blacklist" or "install"."""

    path: str
    command: str
    module: str
    rest: str


def parse_modprobe(path: str, text: str) -> tuple[Rival, ...]:
    """The options, blacklist and install lines of a modprobe.d file; a backslash joins a line to the next."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split(None, 2)
        if len(words) > 1 and words[0] in ("options", "blacklist", "install"):
            rest = words[2] if len(words) > 2 else ""
            found.append(Rival(path, words[0], words[1].replace("-", "_"), rest))
    return tuple(found)


def options_in(text: str, module: str) -> str:
    """The options that a modprobe.d file gives a module; several lines of it are joined."""
    lines = parse_modprobe("", text)
    return " ".join(line.rest for line in lines if line.command == "options" and line.module == module)
