# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock, as far as a decision depends on it: a sight, so that its running alone is no change."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.host import Host

DAY = 86_400  # seconds


def days_until(host: Host, moment: int, most: int) -> int:
    """The whole days until that moment (unix time, in seconds), at most `most`.

    Below 0 it is now or was before: -1 within the first day after it, -2 within the second.
    """
    now = host.time()
    return min((moment - now) // DAY, most) if moment > now else -1 - (now - moment) // DAY
