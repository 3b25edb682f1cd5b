# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of Fabric Manager: at the loaded driver's exact version, and held; with NVLink 5, its subnet manager."""

from __future__ import annotations

import re
from typing import Callable, NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect
from .package_rows import upstream
from .packages import Packages, Wanted, Work, is_there, settle_holds
from .unit_names import FABRIC_MANAGER as UNIT

# What the look asks for: every name that it ever had, and what NVLink 5 needs beside it.
PACKAGES = ("nvidia-fabricmanager*", "nvidia-fabric-manager*", "nvlsm", "infiniband-diags")
BESIDE = ("nvlsm", "infiniband-diags")
NAME = re.compile(r"nvidia-fabric-?manager(-\d+)?")  # without -dev, -devel


class Need(NamedTuple):
    """What is needed: Fabric Manager of the driver's version, with `beside` for NVLink 5.

    `library` is the driver's version on the disk, where it is known. `runs`: the service is up, so that another package
    owes the restart named `debt`; `effects` are of the installing.
    """

    driver: str
    library: str | None
    beside: bool
    runs: bool
    debt: str
    effects: tuple[Effect, ...] = ()


def whole_at(now: Packages, driver: str) -> tuple[str, ...]:
    """The packages of Fabric Manager that are installed whole at the driver's version."""
    return tuple(
        name
        for name, found in now.installed.items()
        if NAME.fullmatch(name) and upstream(found.version) == driver and found.whole
    )


def keep_packages(todo: Todo, now: Packages, past: Past, need: Need, users: Callable[[], str]) -> Work:
    """Plan the packages; planned is what changes Fabric Manager, and stuck what waits too.

    `users` tells who would lose their links when a running Fabric Manager changes, "" for nobody.
    """
    whole = whole_at(now, need.driver)
    missing = tuple(name for name in BESIDE if need.beside and not is_there(now, Wanted(name)))
    if whole and not missing:
        settle_holds(todo, now, past, whole, hold=True)
        return Work()
    if not whole and need.library not in (None, need.driver):
        todo.wait(
            "NotReady",
            f"{UNIT}: the loaded driver is {need.driver} and the installed one {need.library} (see nvidia-driver): "
            f"Fabric Manager, {installed(now)}, follows once the installed one is loaded",
        )
        return Work(stuck=True)
    if not whole and need.runs:
        who = users()
        if who:
            todo.wait(
                "Busy",
                f"{UNIT}: Fabric Manager is {installed(now)} and the loaded driver {need.driver}; it is installed and "
                f"restarted later, since {who}",
            )
            return Work(stuck=True)
    from .fabric_manager_install import install_exact

    return install_exact(todo, now, past, need, whole, missing)


def installed(now: Packages) -> str:
    """The versions of Fabric Manager that are installed, for a sentence."""
    found = [package.version for name, package in now.installed.items() if NAME.fullmatch(name)]
    return ", ".join(found) or "not installed"
