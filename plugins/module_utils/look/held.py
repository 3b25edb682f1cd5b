# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether containers hold GPUs: a sight, since other vendors' files lie beside ours."""

from __future__ import annotations

from ..core.host import Host

HOLDS = "/etc/cdi"  # holds are its bcd-*.json


def has_holds(host: Host) -> bool:
    """Whether containers hold GPUs through our CDI files."""
    return any(name.startswith("bcd-") and name.endswith(".json") for name in host.names(HOLDS))
