# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The swap areas that are on, without how much of them is in use, which changes all the time: a sight."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.host import Host

SWAPS = "/proc/swaps"


def without_use(host: Host) -> str:
    """The text of /proc/swaps, with 0 for what is in use; "" where this kernel has none."""
    return "\n".join(_without_use(line) for line in (host.read(SWAPS) or "").splitlines())


def _without_use(line: str) -> str:
    """Of path, type, size, used and priority; what else a line is stays, as the line of titles does."""
    path, *rest = line.split() or [""]
    return "\t".join((path, *rest[:2], "0", rest[3])) if len(rest) == 4 and rest[2].isdigit() else line
