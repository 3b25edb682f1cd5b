# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd asked when a service's program ended: a file of its own, which only the doctor imports."""

from __future__ import annotations


def asks_end(name: str) -> tuple[str, ...]:
    """The question when a service's program ended last: microseconds of the monotonic clock, 0 where none has."""
    return ("systemctl", "show", "--property=ExecMainExitTimestampMonotonic", "--value", name)
