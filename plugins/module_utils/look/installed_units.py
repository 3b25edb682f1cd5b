# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which units systemd has files of."""

from __future__ import annotations

from ..core.host import Host
from ..plan.systemd_asks import FOLDERS


def has_unit(host: Host, name: str) -> bool:
    """Whether there is a unit file of that name, of a package, an administrator's or ours."""
    return any(host.exists(f"{folder}/{name}") for folder in FOLDERS)
