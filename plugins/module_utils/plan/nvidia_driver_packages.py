# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's packages: chosen from what the index offers, installed at one exact version, and held."""

from __future__ import annotations

from typing import NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect, fail
from .nvidia_driver_flavour import UNIT
from .nvidia_driver_version import INSTALL_DEBT, OPEN, OnDisk, Target
from .nvidia_install import install_choice
from .nvidia_packages import Choice, PackageSet, choose, driver_sets, headers, names_of, unserved
from .packages import Offer, Packages, Wanted, not_offered, offers, refresh, upstream
from .packages_install import settle_holds


class Shelf(NamedTuple):
    """What is on the disk for the running kernel `release`: the module file, the library, the packages.

    `prefer`: the version of the branch that is in use, "" for none. `elsewhere`: other installed kernels that have a
    module file. `headers`: whether modules can be built for the running kernel. `signed`: only signed modules can be
    loaded.
    """

    release: str
    on_disk: OnDisk | None
    library: str | None
    packages: Packages
    prefer: str = ""
    elsewhere: tuple[str, ...] = ()
    headers: bool = True
    signed: bool = False


def plan_install(
    todo: Todo, target: Target, shelf: Shelf, past: Past, effects: tuple[Effect, ...], disruption: str
) -> str | None:
    """Plan the installation; the driver's version after it, "" when all is installed, None when nothing can be.

    Behind it the runner looks again: no driver is taken out before the module file of the new one is there.
    """
    packages = shelf.packages
    refreshed = refresh(todo, packages, past)
    choice = _find(todo, target, shelf, past, refreshed)
    if choice is None:
        return None
    made = Todo()
    planned = install_choice(
        made,
        packages,
        past,
        choice,
        refreshed=refreshed,
        hold=bool(target.version),
        effects=effects,
        disruption=disruption,
        owes=(INSTALL_DEBT,),
        barrier=True,
    )
    return _taken(todo, made, choice.version, planned)


def _find(todo: Todo, target: Target, shelf: Shelf, past: Past, refreshed: str) -> Choice | None:
    """The set to install, with the headers that its modules are built with; None, said, where there is none."""
    packages = shelf.packages
    sets = driver_sets(packages.distribution, target.branch, target.flavour == OPEN, shelf.release, shelf.signed)
    wants = headers(packages.distribution, shelf.release)
    names = (*names_of(sets), *((wants.name,) if wants else ()))
    streams = any(one.stream for one in sets)
    offered = offers(packages, past, names, every=streams)
    builds = shelf.headers or wants is None or _is_offered(wants, offered)
    usable = sets if builds else tuple(one for one in sets if not _is_built(one))
    choice = None
    for version in (target.version,) if target.version else (shelf.prefer, "") if shelf.prefer else ("",):
        choice = choice or choose(usable, offered, packages, target.branch, version)
    if choice is not None:
        extra = (wants,) if wants and not shelf.headers and _is_built(choice.set) else ()
        return choice._replace(wanted=(*choice.wanted, *extra))
    message = f"{UNIT}: {unserved(sets, offered, packages.distribution, target.branch, target.version)}"
    if not builds and choose(sets, offered, packages, target.branch, target.version):
        message = (
            f"{UNIT}: the driver's modules are built for the running kernel {shelf.release}, whose headers are neither "
            f"installed nor offered ({' '.join(str(word) for word in wants or () if word)}): boot a kernel that the "
            "package sources carry, or add its headers to them"
        )
    not_offered(todo, f"install the driver {target.words}", message, refreshed)
    return None


def _is_built(one: PackageSet) -> bool:
    """Whether dkms builds the set's module on the host."""
    return not one.prebuilt


def _is_offered(wants: Wanted, offered: tuple[Offer, ...]) -> bool:
    return any(
        offer.name == wants.name and (not wants.version or offer.version.startswith(wants.version)) for offer in offered
    )


def _taken(todo: Todo, made: Todo, version: str, planned: bool) -> str | None:
    """Take over what was planned, whose last step settles the debt; None where a step of it cannot be taken."""
    plan = made.plan()
    for wait in plan.pending:
        todo.wait(wait.reason, wait.message)
    todo.note(*plan.notes)
    if plan.steps:
        last = plan.steps[-1]
        todo.add(*plan.steps[:-1], last._replace(pays=(*last.pays, INSTALL_DEBT)))
    if any(step.kind in ("fail", "later") for step in plan.steps):
        return None
    return version if planned else ""


def say_what_is_wrong(todo: Todo, target: Target, shelf: Shelf) -> None:
    """The packages are as they should be, and what is on the disk is not: say what, and what to do."""
    action = f"install the driver {target.words}"
    if shelf.on_disk is None and shelf.elsewhere:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: the running kernel {shelf.release} has no module nvidia, and {', '.join(shelf.elsewhere)} has: "
            "reboot the node into it",
        )
    elif shelf.on_disk is None:
        todo.add(
            fail(
                action,
                f"{UNIT}: the packages of the driver are installed, and the running kernel {shelf.release} has no "
                f"module nvidia: install its headers (linux-headers-{shelf.release}, or kernel-devel-{shelf.release}) "
                "and run dkms autoinstall, or install the module that is built for it",
            )
        )
    elif shelf.library == shelf.on_disk.version:
        todo.add(
            fail(
                action,
                f"{UNIT}: the packages of the driver {target.words} are installed, and the module file for the kernel "
                f"{shelf.release} is {shelf.on_disk.version}, {shelf.on_disk.flavour} "
                f"({shelf.on_disk.path or 'see modinfo nvidia'}): see dkms status, and remove what else put it there",
            )
        )
    else:
        todo.add(
            fail(
                action,
                f"{UNIT}: the packages of the driver are installed, and its library on the disk is "
                f"{shelf.library or 'missing'} where the module is {shelf.on_disk.version}: remove what another "
                "installer left, and install the packages again",
            )
        )


def keep_held(todo: Todo, target: Target, packages: Packages, past: Past) -> None:
    """Hold the installed packages of an exact version."""
    names = tuple(name for name, found in packages.installed.items() if upstream(found.version) == target.version)
    settle_holds(todo, packages, past, names, hold=bool(target.version))
