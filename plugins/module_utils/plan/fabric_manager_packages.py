# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of Fabric Manager that are not as needed: at the loaded driver's exact version, and held."""

from __future__ import annotations

from typing import Callable, NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect
from .fabric_manager_installed import NAME, missing, whole_at
from .packages import settle_holds
from .packages_seen import Packages, Work
from .unit_names import FABRIC_MANAGER as UNIT


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


def keep_packages(todo: Todo, now: Packages, past: Past, need: Need, users: Callable[[], str]) -> Work:
    """Plan the packages; planned is what changes Fabric Manager, and stuck what waits too.

    `users` tells who would lose their links when a running Fabric Manager changes, "" for nobody.
    """
    whole = whole_at(now.installed, need.driver)
    lacking = missing(now.installed, need.beside)
    if whole and not lacking:
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

    return install_exact(todo, now, past, need, whole, lacking)


def installed(now: Packages) -> str:
    """The versions of Fabric Manager that are installed, for a sentence."""
    found = [package.version for name, package in now.installed.items() if NAME.fullmatch(name)]
    return ", ".join(found) or "not installed"
