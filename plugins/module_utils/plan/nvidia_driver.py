# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver: the driver of a branch, installed and loaded in one full version.

The version counts, not the branch: the loaded module, its file for the running kernel, the library and the packages
agree on it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from . import initramfs
from .gpu_chips import PciGpu
from .nvidia_driver_flavour import flavour_for, served
from .nvidia_driver_nodes import Nodes
from .nvidia_driver_target import FULL_VERSION, OnDisk, Target, branch_of
from .nvidia_driver_upkeep import (
    NODES_LANE,
    PERSISTENCED,
    UVM,
    Native,
    keep_out,
    keep_running,
)
from .nvidia_driver_version import OPEN, Loaded
from .service_seen import Service
from .settings import strict
from .unit_names import NVIDIA_DRIVER as UNIT

if TYPE_CHECKING:  # a converged host needs none to plan
    from .nvidia_driver_packages import Shelf
    from .nvidia_driver_swap import Use
    from .package_rows import Package

FIELDS = (
    Field("branch", "branch", (str,)),
    Field("open", "open", (bool,)),
    Field("version", "version", (str,)),
)


class Settings(NamedTuple):
    """`open` is None for what the GPUs need; `version` is "" for any of the branch."""

    branch: str
    open: bool | None = None
    version: str = ""


class Now(NamedTuple):
    """What the host shows. `modules`: names of loaded modules, as NVIDIA gives them. `idle`: services that a pass
    stopped and that do not run. `stale`: device nodes of unified memory, while its module is to be loaded. `nodes` and
    `stale` may be values that raise when they are used: any module that is loaded may bring nodes. `astray`: packages
    of the driver that are not of its library's version.

    Seen only where it is needed: `use` where the loaded driver is not the one that is asked for, `shelf` where packages
    are to be looked at, `only_signed` (why the kernel takes no unsigned module, or "") where one is to be loaded.
    `unknown`: in check mode, after what it is known which driver is on the disk, or loaded.
    """

    gpus: tuple[PciGpu, ...]
    loaded: Loaded | None
    on_disk: OnDisk | None
    library: str | None
    native: Native
    modules: frozenset[str] = frozenset()
    nodes: Nodes = Nodes()
    persistenced: Service | None = None
    idle: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    astray: tuple[Package, ...] = ()
    use: Use | None = None
    shelf: Shelf | None = None
    only_signed: str = ""
    unknown: str = ""


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; a version alone implies its branch. Raises Refused."""
    wire = strict(UNIT, FIELDS, given)
    version, branch = wire.get("version", ""), wire.get("branch", "")
    if "version" in wire and not FULL_VERSION.fullmatch(version):
        raise Refused(f"{UNIT}: version {version!r} is no full version of a driver: give one such as 580.95.05")
    if "branch" not in wire and not version:
        raise Refused(f"{UNIT}: neither branch nor version is given: give the branch of the driver, such as 580")
    if "branch" in wire and not re.fullmatch(r"[1-9][0-9]{0,3}", branch):
        raise Refused(f"{UNIT}: branch {branch!r} is no branch of a driver: give its digits, such as 580")
    if version and branch and branch_of(version) != branch:
        raise Refused(f"{UNIT}: version {version} is not of branch {branch}: correct one of them")
    return Settings(branch or branch_of(version), wire.get("open"), version)


# -- what is asked for, and what is there


def target_of(settings: Settings, gpus: tuple[PciGpu, ...], loaded: Loaded | None) -> tuple[Target, tuple[str, ...]]:
    """The driver that is asked for on a host with these GPUs, and what is to be said; raises Refused.

    Where the GPUs have gone from under a loaded driver, nothing speaks for another flavour than it has.
    """
    is_open = loaded.flavour == OPEN if loaded and settings.open is None and not served(gpus) else settings.open
    flavour = flavour_for(int(settings.branch), is_open, served(gpus), settings.version)
    return Target(settings.branch, flavour.name, settings.version), flavour.notes


def has_nothing_to_do(gpus: tuple[PciGpu, ...], loaded: Loaded | None) -> bool:
    """Whether no GPU of this host is for the driver: in a mixed pool, say."""
    return loaded is None and not served(gpus)


def is_on_disk(target: Target, on_disk: OnDisk | None, library: str | None) -> bool:
    """Whether the module file and the library are those of one driver that is asked for."""
    return on_disk is not None and target.takes(on_disk.version, on_disk.flavour) and library == on_disk.version


def fits(target: Target, now: Now) -> bool:
    """Whether module file, library and packages are those of one driver that is asked for."""
    return is_on_disk(target, now.on_disk, now.library) and not now.astray


def is_loaded(loaded: Loaded | None, on_disk: OnDisk | None) -> bool:
    """Whether what is loaded is what is on the disk."""
    return loaded is not None and on_disk is not None and loaded == Loaded(on_disk.version, on_disk.flavour)


# -- the plan


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """The packages, then the loaded driver, then what goes with it."""
    todo = Todo()
    if now.unknown:
        from .nvidia_driver_change import plan_unknown

        return plan_unknown(settings, now, past)
    if has_nothing_to_do(now.gpus, now.loaded):
        todo.note(_nothing_to_do(now.gpus))
        return todo.plan()
    target, notes = target_of(settings, now.gpus, now.loaded)
    todo.note(*notes)
    right = now.shelf is None and fits(target, now) and is_loaded(now.loaded, now.on_disk)
    if not right:
        from .nvidia_driver_change import is_claimed  # neither this nor what it imports is for a converged host

        if is_claimed(todo, target, now):
            return todo.plan()
    due = keep_out(todo, now.native, past)
    if not right:
        from .nvidia_driver_change import change

        right = change(todo, target, now, past)
    if right:
        _plan_upkeep(todo, now, past)
    if due:
        from .nvidia_driver_repair import rebuild

        with todo.lane(initramfs.DEBT):
            rebuild(todo, now.native)
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Nothing is undone: a driver that is taken away takes the work of the GPUs along."""
    from .nvidia_driver_absent import leave

    return leave(now, past)


def _nothing_to_do(gpus: tuple[PciGpu, ...]) -> str:
    if gpus:
        return "every NVIDIA GPU of this host is bound to vfio-pci for virtual machines: no driver is installed"
    return "this host has no NVIDIA GPU on its PCI bus: no driver is installed"


def _plan_upkeep(todo: Todo, now: Now, past: Past) -> None:
    """The right driver is loaded: unified memory, what a killed pass took out, device nodes, persistenced."""
    if UVM not in now.modules or now.idle or past.owed or past.tried:
        from .nvidia_driver_change import mend

        mend(todo, now, past)
    with todo.lane(NODES_LANE):
        if now.nodes.missing:
            from .nvidia_driver_repair import make_nodes

            make_nodes(todo, now.nodes)
    with todo.lane(PERSISTENCED):
        keep_running(todo, now.persistenced)
