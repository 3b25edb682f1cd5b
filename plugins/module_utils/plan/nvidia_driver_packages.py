# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's packages: chosen from what the index offers, installed at one exact version, and held."""

from __future__ import annotations

from typing import Callable, NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect, fail
from .nvidia_driver_target import INSTALL_DEBT, OnDisk, Target, branch_of
from .nvidia_driver_version import OPEN, by_number
from .nvidia_install import install_choice
from .nvidia_names import PackageSet, driver_sets
from .nvidia_packages import Choice, choose, headers, kernel_images, names_of, unserved
from .package_rows import Package, upstream
from .packages import Offer, Wanted, settle_holds
from .packages_index import not_offered, offers, refresh
from .packages_seen import Packages
from .unit_names import NVIDIA_DRIVER as UNIT


class Shelf(NamedTuple):
    """What is on the disk for the running kernel `release`: the module file, the library, the packages.

    `loaded`: the loaded driver's version, "" for none. `elsewhere`: other installed kernels that have a module file.
    `headers`: whether modules can be built for the running kernel. `signed`: only signed modules can be loaded.
    """

    release: str
    on_disk: OnDisk | None
    library: str | None
    packages: Packages
    loaded: str = ""
    elsewhere: tuple[str, ...] = ()
    headers: bool = True
    signed: bool = False


class Brought(NamedTuple):
    """What an installation brings beside its packages, and what it disturbs."""

    effects: tuple[Effect, ...]
    disruption: str = "none"


class Coming(NamedTuple):
    """The driver's version in the packages that are chosen, and whether their installation is planned."""

    version: str
    planned: bool


def plan_install(
    todo: Todo, target: Target, shelf: Shelf, past: Past, brought: Callable[[str], Brought]
) -> Coming | None:
    """Plan the installation; what is there after it, None when nothing can be installed. `brought`: by version.

    Behind it the runner looks again: no driver is taken out before the module file of the new one is there.
    """
    packages = shelf.packages
    refreshed = refresh(todo, packages, past)
    choice = _find(todo, target, shelf, past, refreshed)
    if choice is None:
        return None
    effects, disruption = brought(choice.version)
    work = install_choice(
        todo,
        packages,
        past,
        choice,
        refreshed=refreshed,
        hold=bool(target.version),
        effects=effects,
        disruption=disruption,
        owes=(INSTALL_DEBT,),
        pays=(INSTALL_DEBT,),
        barrier=True,
    )
    return None if work.stuck else Coming(choice.version, work.planned)


def _find(todo: Todo, target: Target, shelf: Shelf, past: Past, refreshed: str) -> Choice | None:
    """The set to install, with the headers that its modules are built with; None, said, where there is none."""
    packages = shelf.packages
    sets = driver_sets(packages.distribution, target.branch, target.flavour == OPEN, shelf.release, shelf.signed)
    wants = headers(packages.distribution, shelf.release)
    names = (*names_of(sets, kernel_images(packages)), *((wants.name,) if wants else ()))
    streams = any(one.stream for one in sets)
    offered = offers(packages, past, names, every=streams)
    builds = shelf.headers or wants is None or _is_offered(wants, offered)
    usable = sets if builds else tuple(one for one in sets if not _is_built(one))
    choice = None
    for version in _versions(target, shelf, usable):
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


def _versions(target: Target, shelf: Shelf, sets: tuple[PackageSet, ...]) -> tuple[str, ...]:
    """The versions to look for, "" for the newest: that of the installed packages or the loaded driver comes first.

    A newer driver in the package sources is no reason to install it. Of installed packages that disagree, one that is
    held says the version, else the newest does, to which an upgrade that came half-way was on its way.
    """
    if target.version:
        return (target.version,)
    packages = shelf.packages
    names = {name for one in sets for name in one.driver if name in packages.installed}
    here = {upstream(packages.version(name)) for name in names} or {shelf.loaded}
    held = {upstream(packages.version(name)) for name in names if packages.installed[name].held}
    mine = (version for version in here if branch_of(version) == target.branch)
    return (*sorted(mine, key=lambda version: (version in held, by_number(version)), reverse=True), "")


def _is_built(one: PackageSet) -> bool:
    """Whether dkms builds the set's module on the host."""
    return not one.prebuilt


def _is_offered(wants: Wanted, offered: tuple[Offer, ...]) -> bool:
    return any(
        offer.name == wants.name and (not wants.version or offer.version.startswith(wants.version)) for offer in offered
    )


def say_what_is_wrong(todo: Todo, target: Target, version: str, shelf: Shelf, astray: tuple[Package, ...] = ()) -> None:
    """The packages, of this version, are in place, and what is on the disk is not as they have it: say what to do."""
    module = shelf.on_disk
    if module is None and shelf.elsewhere:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: the running kernel {shelf.release} has no module nvidia, and {', '.join(shelf.elsewhere)} has: "
            "reboot the node into it",
        )
        return
    if module is None:
        wrong = (
            f"the running kernel {shelf.release} has no module nvidia: install its headers "
            f"(linux-headers-{shelf.release}, or kernel-devel-{shelf.release}) and run dkms autoinstall, or install "
            "the module that is built for it"
        )
    elif (module.version, module.flavour) != (version, target.flavour):
        wrong = (
            f"the module file for the kernel {shelf.release} is {module.version}, {module.flavour} "
            f"({module.path or 'see modinfo nvidia'}): see dkms status, and remove what else put it there"
        )
    elif astray and shelf.library == version:
        them = ", ".join(f"{package.name} {package.version}" for package in astray)
        wrong = f"{them} beside them, which is another driver's: remove it, or install it at that version"
    else:
        wrong = (
            f"the library on the disk is {shelf.library or 'missing'}: remove what another installer left, and install "
            "the packages again"
        )
    message = f"{UNIT}: the packages of the driver {version}, {target.flavour} are installed, and {wrong}"
    todo.add(fail(f"install the driver {target.words}", message))


def keep_held(todo: Todo, target: Target, packages: Packages, past: Past) -> None:
    """Hold the installed packages of an exact version."""
    names = tuple(name for name, found in packages.installed.items() if upstream(found.version) == target.version)
    settle_holds(todo, packages, past, names, hold=bool(target.version))
