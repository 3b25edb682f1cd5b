# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg and rpm say of packages, and which manager a host has."""

from __future__ import annotations

from ..core.host import Host
from ..plan.packages import Packages


def packages(host: Host, names: tuple[str, ...], where: str) -> Packages:
    """The snapshot for the named packages (globs are taken). One program is asked.

    Raises Refused for a distribution whose manager we do not know, naming it and the unit `where`.
    """
    raise NotImplementedError
