# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of Fabric Manager: at the loaded driver's exact version, and held; with NVLink 5, its subnet manager."""

from __future__ import annotations

import re
from typing import Callable, NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect
from .packages import Offer, Packages, Wanted, not_offered, offers, refresh, upstream, version_key
from .packages_install import install, is_there, settle_holds

UNIT = "fabric-manager"
# What the look asks for: every name that it ever had, and what NVLink 5 needs beside it.
PACKAGES = ("nvidia-fabricmanager*", "nvidia-fabric-manager*", "nvlsm", "infiniband-diags")
MAY_GO = ("nvidia-fabricmanager*", "nvidia-fabric-manager*")
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
        if NAME.fullmatch(name) and _is(found.version, driver) and found.whole
    )


def keep_packages(todo: Todo, now: Packages, past: Past, need: Need, users: Callable[[], str]) -> bool | None:
    """Plan the packages; whether Fabric Manager changes, None where it cannot be as it should.

    `users` tells who would lose their links when a running Fabric Manager changes, "" for nobody.
    """
    whole = whole_at(now, need.driver)
    missing = tuple(name for name in BESIDE if need.beside and not is_there(now, Wanted(name)))
    if whole and not missing:
        settle_holds(todo, now, past, whole, hold=True)
        return False
    if not whole and need.library not in (None, need.driver):
        todo.wait(
            "NotReady",
            f"{UNIT}: the loaded driver is {need.driver} and the installed one {need.library} (see nvidia-driver): "
            f"Fabric Manager, {_installed(now)}, follows once the installed one is loaded",
        )
        return None
    if not whole and need.runs:
        who = users()
        if who:
            todo.wait(
                "Busy",
                f"{UNIT}: Fabric Manager is {_installed(now)} and the loaded driver {need.driver}; it is installed and "
                f"restarted later, since {who}",
            )
            return None
    return _install(todo, now, past, need, whole, missing)


def _install(
    todo: Todo, now: Packages, past: Past, need: Need, whole: tuple[str, ...], missing: tuple[str, ...]
) -> bool | None:
    from .nvidia_packages import fabric_manager_names

    names = () if whole else fabric_manager_names(now.distribution, need.driver.split(".")[0])
    refreshed = refresh(todo, now, past)
    offered = offers(now, past, (*names, *missing), every=False)  # the driver's stream is enabled already
    lost = [name for name in missing if name not in {offer.name for offer in offered}]
    if lost:
        not_offered(todo, f"install {' and '.join(lost)}", _no_beside(now, lost), refreshed)
        return None
    wanted = _exact(names, offered, need.driver)
    if names and wanted is None:
        action = f"install Fabric Manager {need.driver}"
        not_offered(todo, action, _no_manager(now, names, offered, need.driver), refreshed)
        return None
    if missing:
        install(todo, now, past, tuple(Wanted(name) for name in missing))
    if wanted is None:
        settle_holds(todo, now, past, whole, hold=True)
        return False
    return (
        install(
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
        or None
    )


def _is(package: str, driver: str) -> bool:
    return upstream(package) == driver


def _exact(names: tuple[str, ...], offered: tuple[Offer, ...], driver: str) -> Wanted | None:
    """The newest build of the first name that is offered at the driver's version."""
    for name in names:
        builds = [offer.version for offer in offered if offer.name == name and _is(offer.version, driver)]
        if builds:
            return Wanted(name, max(builds, key=version_key))
    return None


def _installed(now: Packages) -> str:
    found = [package.version for name, package in now.installed.items() if NAME.fullmatch(name)]
    return ", ".join(found) or "not installed"


def _no_manager(now: Packages, names: tuple[str, ...], offered: tuple[Offer, ...], driver: str) -> str:
    there = sorted({upstream(offer.version) for offer in offered if offer.name in names}, key=version_key)
    have = f"they offer {', '.join(there[-4:])}" if there else "they offer none at all"
    return (
        f"{UNIT}: the loaded driver is {driver}, and no package source of this host ({now.distribution.words}) offers "
        f"Fabric Manager {driver} as {' or '.join(names)}; {have}, and installed is {_installed(now)}: add NVIDIA's "
        "repository that carries it to the host's image, or load a driver that has its Fabric Manager"
    )


def _no_beside(now: Packages, lost: list[str]) -> str:
    return (
        f"{UNIT}: no package source of this host ({now.distribution.words}) offers {' or '.join(lost)}, without which "
        "the NVLink switches of this board are not managed: add the repository that carries it to the host's image"
    )
