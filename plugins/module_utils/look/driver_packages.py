# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of NVIDIA's driver that are installed beside it."""

from __future__ import annotations

from ..core.host import Host
from ..plan.nvidia_driver_target import Target
from ..plan.nvidia_driver_version import OPEN
from ..plan.nvidia_names import astray, driver_sets
from ..plan.package_rows import Package, asks_dpkg, parse_dpkg
from .kernel import release
from .os_release import distribution
from .package_database import listed


def strays(host: Host, target: Target, version: str) -> tuple[Package, ...]:
    """Those that are not of the version that the module file and the library have. One program is asked.

    None are known of on a distribution whose package manager nobody here knows.
    """
    seen = distribution(host)
    if not seen.is_known:
        return ()
    sets = driver_sets(seen, target.branch, target.flavour == OPEN, release(host), signed=False)
    names = tuple(dict.fromkeys(name for one in sets for name in one.driver))
    if seen.family == "debian":
        return astray(sets, parse_dpkg(listed(host, asks_dpkg(names))), version)
    from ..plan.package_rows_rpm import asks_rpm, parse_rpm

    return astray(sets, parse_rpm(listed(host, asks_rpm(names))), version)
