# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of Fabric Manager as a look sees them, and whether they are as they should be."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.plan import Past
from .debts import debt
from .package_rows import Package, upstream

# What the look asks for: every name that it ever had, and what NVLink 5 needs beside it.
PACKAGES = ("nvidia-fabricmanager*", "nvidia-fabric-manager*", "nvlsm", "infiniband-diags")
BESIDE = ("nvlsm", "infiniband-diags")
NAME = re.compile(r"nvidia-fabric-?manager(-\d+)?")  # without -dev, -devel


def whole_at(found: Mapping[str, Package], driver: str) -> tuple[str, ...]:
    """The packages of Fabric Manager, of those that are installed, that are whole at the driver's version."""
    return tuple(
        name
        for name, package in found.items()
        if NAME.fullmatch(name) and upstream(package.version) == driver and package.whole
    )


def missing(found: Mapping[str, Package], beside: bool) -> tuple[str, ...]:
    """What NVLink 5 needs (`beside`) and is not installed whole."""
    return tuple(name for name in BESIDE if beside and not (name in found and found[name].whole))


def as_needed(found: Mapping[str, Package], driver: str, beside: bool, past: Past) -> bool:
    """Whether nothing is to be done about them: whole at the driver's version, held, and no hold of a pass is owed."""
    whole = whole_at(found, driver)
    if not whole or missing(found, beside):
        return False
    return not any(
        not package.held and (name in whole or debt("hold", name) in past.owed) for name, package in found.items()
    )
