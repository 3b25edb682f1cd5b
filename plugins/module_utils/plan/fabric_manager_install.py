# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installation of Fabric Manager, and of what NVLink 5 needs beside it, where they are missing."""

from __future__ import annotations

from ..core.plan import Past, Todo
from .fabric_manager_packages import Need, installed
from .nvidia_packages import fabric_manager_names
from .package_rows import upstream
from .packages import Offer, Wanted, settle_holds, version_key
from .packages_index import not_offered, offers, refresh
from .packages_install import install
from .packages_seen import Packages, Work
from .unit_names import FABRIC_MANAGER as UNIT

MAY_GO = ("nvidia-fabricmanager*", "nvidia-fabric-manager*")  # apt may change or take away these


def install_exact(
    todo: Todo, now: Packages, past: Past, need: Need, whole: tuple[str, ...], missing: tuple[str, ...]
) -> Work:
    """Plan the installation at the driver's exact version; returns what `keep_packages` does."""
    names = () if whole else fabric_manager_names(now.distribution, need.driver.split(".")[0])
    refreshed = refresh(todo, now, past)
    offered = offers(now, past, (*names, *missing), every=False)  # the driver's stream is enabled already
    lost = [name for name in missing if name not in {offer.name for offer in offered}]
    if lost:
        not_offered(todo, f"install {' and '.join(lost)}", _no_beside(now, lost), refreshed)
        return Work(stuck=True)
    wanted = _exact(names, offered, need.driver)
    if names and wanted is None:
        action = f"install Fabric Manager {need.driver}"
        not_offered(todo, action, _no_manager(now, names, offered, need.driver), refreshed)
        return Work(stuck=True)
    if missing and install(todo, now, past, tuple(Wanted(name) for name in missing)).stuck:
        return Work(stuck=True)
    if wanted is None:
        settle_holds(todo, now, past, whole, hold=True)
        return Work()
    return install(
        todo,
        now,
        past,
        (wanted,),
        hold=True,
        may_go=MAY_GO,
        effects=need.effects,
        disruption="gpu" if need.runs else "none",
        owes=(need.debt,) if need.runs else (),
    )


def _exact(names: tuple[str, ...], offered: tuple[Offer, ...], driver: str) -> Wanted | None:
    """The newest build of the first name that is offered at the driver's version."""
    for name in names:
        builds = [offer.version for offer in offered if offer.name == name and upstream(offer.version) == driver]
        if builds:
            return Wanted(name, max(builds, key=version_key))
    return None


def _no_manager(now: Packages, names: tuple[str, ...], offered: tuple[Offer, ...], driver: str) -> str:
    there = sorted({upstream(offer.version) for offer in offered if offer.name in names}, key=version_key)
    have = f"they offer {', '.join(there[-4:])}" if there else "they offer none at all"
    return (
        f"{UNIT}: the loaded driver is {driver}, and no package source of this host ({now.distribution.words}) offers "
        f"Fabric Manager {driver} as {' or '.join(names)}; {have}, and installed is {installed(now)}: add NVIDIA's "
        "repository that carries it to the host's image, or load a driver that has its Fabric Manager"
    )


def _no_beside(now: Packages, lost: list[str]) -> str:
    return (
        f"{UNIT}: no package source of this host ({now.distribution.words}) offers {' or '.join(lost)}, without which "
        "the NVLink switches of this board are not managed: add the repository that carries it to the host's image"
    )
