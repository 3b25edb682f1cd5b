# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fabric Manager's packages as they are installed."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.host import Host
from ..plan.fabric_manager_installed import PACKAGES
from ..plan.package_rows import Package, asks_dpkg, parse_dpkg
from ..plan.unit_names import FABRIC_MANAGER as UNIT
from .os_release import distribution
from .package_database import listed


def installed(host: Host) -> Mapping[str, Package]:
    """Those that are installed, by name. One program is asked.

    Raises Refused for a distribution whose package manager nobody here knows.
    """
    if distribution(host).family == "debian":
        rows = parse_dpkg(listed(host, asks_dpkg(PACKAGES)))
        found = {package.name: package for package in rows}
        if len(found) == len(rows):  # else one is there for two architectures
            return found
    from .packages import packages  # what holds a package of rpm's, its manager's tables tell

    return packages(host, PACKAGES, UNIT).installed
