# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock, as far as a decision depends on it: a sight, so that its running alone is no change."""

from __future__ import annotations

from ..core.host import Host


def has_passed(host: Host, moment: int) -> bool:
    """Whether that moment (unix time, in seconds) is now or was before."""
    return host.time() >= moment
