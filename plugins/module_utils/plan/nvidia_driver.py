# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver: the driver of a branch, installed and loaded in one full version.

The version counts, not the branch: the loaded module, its file for the running kernel and the library agree on it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import Step
from . import initramfs
from .gpu_chips import PciGpu
from .nvidia_driver_flavour import UNIT, choose, served
from .nvidia_driver_upkeep import (
    BLACKLIST,
    LANE,
    NODES_LANE,
    PERSISTENCED,
    UVM,
    Native,
    Nodes,
    Service,
    keep_out,
    keep_running,
    make_nodes,
    rebuild,
)
from .nvidia_driver_version import FULL_VERSION, INSTALL_DEBT, OPEN, Loaded, OnDisk, Target, branch_of
from .settings import strict

if TYPE_CHECKING:  # a converged host needs neither
    from .nvidia_driver_packages import Shelf
    from .nvidia_driver_swap import Use

# How the clauses go after which more is known.
INSTALLED, LOADED, REBOOTED = "the driver is installed", "loaded", "the node is rebooted"
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
    `stale` may be values that raise when they are used: any module that is loaded may bring nodes.

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
    choice = choose(int(settings.branch), is_open, served(gpus))
    return Target(settings.branch, choice.flavour, settings.version), choice.notes


def has_nothing_to_do(gpus: tuple[PciGpu, ...], loaded: Loaded | None) -> bool:
    """Whether no GPU of this host is for the driver: in a mixed pool, say."""
    return loaded is None and not served(gpus)


def is_on_disk(target: Target, on_disk: OnDisk | None, library: str | None) -> bool:
    """Whether the module file and the library are those of one driver that is asked for."""
    return on_disk is not None and target.takes(on_disk.version, on_disk.flavour) and library == on_disk.version


def is_loaded(loaded: Loaded | None, on_disk: OnDisk | None) -> bool:
    """Whether what is loaded is what is on the disk."""
    return loaded is not None and on_disk is not None and loaded == Loaded(on_disk.version, on_disk.flavour)


# -- the plan


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """The packages, then the loaded driver, then what goes with it."""
    todo = Todo()
    if now.unknown:
        return _plan_unknown(settings, now, past)
    if has_nothing_to_do(now.gpus, now.loaded):
        todo.note(_nothing_to_do(now.gpus))
        return todo.plan()
    target, notes = target_of(settings, now.gpus, now.loaded)
    todo.note(*notes)
    claims = _claims(target, now)
    if claims:
        todo.wait(
            "Busy",
            f"{UNIT}: nothing is installed while GPUs are held ({claims}): the driver {target.words} follows when "
            "they are released",
        )
        return todo.plan()
    due = keep_out(todo, now.native, past)
    coming = _plan_disk(todo, target, now, past)
    if coming:
        _plan_loaded(todo, target, coming, now, past)
    if due:
        with todo.lane(initramfs.DEBT):
            rebuild(todo, now.native)
    return todo.plan()


def _plan_unknown(settings: Settings, now: Now, past: Past) -> Plan:
    """In check mode, behind an installation: what waits for a reboot, or that more is known later."""
    todo = Todo()
    target, notes = target_of(settings, now.gpus, now.loaded)
    todo.note(*notes)
    obstacle = None if not now.unknown.endswith(REBOOTED) else _obstacle(target, now, past, installs=True)
    if obstacle:
        todo.wait(*obstacle)
    else:
        todo.add(Step("later", f"{NODES_LANE} and {PERSISTENCED}: known after {now.unknown}", path=NODES_LANE))
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Nothing is undone: a driver that is taken away takes the work of the GPUs along. A killed pass is finished."""
    todo = Todo()
    if now.loaded or now.library:
        todo.note("the NVIDIA driver stays installed and loaded, and packages that are held stay held")
    if now.native.file is not None:
        todo.note(
            f"{BLACKLIST} stays and keeps nouveau out: remove it, and rebuild the initramfs, to have nouveau back"
        )
    if initramfs.DEBT in past.owed:
        with todo.lane(initramfs.DEBT):
            rebuild(todo, now.native)
    if past.owed:
        from .nvidia_driver_swap import owed_services, start_service

        for name in owed_services(past):
            with todo.lane(name):
                todo.add(start_service(name)._replace(pays=(f"start {name}",)))
    return todo.plan()


def _nothing_to_do(gpus: tuple[PciGpu, ...]) -> str:
    if gpus:
        return "every NVIDIA GPU of this host is bound to vfio-pci for virtual machines: no driver is installed"
    return "this host has no NVIDIA GPU on its PCI bus: no driver is installed"


def _claims(target: Target, now: Now) -> str:
    """The live holds and pending releases that keep packages from being changed."""
    if now.loaded is None or now.use is None or is_on_disk(target, now.on_disk, now.library):
        return ""
    from .nvidia_driver_swap import claimed_by

    return claimed_by(now.use)


def _plan_disk(todo: Todo, target: Target, now: Now, past: Past) -> Loaded | None:
    """Plan the packages; the driver that is then on the disk, None where there will be none to load."""
    fits = is_on_disk(target, now.on_disk, now.library)
    there = Loaded(now.on_disk.version, now.on_disk.flavour) if now.on_disk else None
    if now.shelf is None:
        return there
    from .nvidia_driver_packages import Brought, keep_held, plan_install, say_what_is_wrong
    from .nvidia_driver_swap import brings

    if fits and INSTALL_DEBT not in past.owed:
        keep_held(todo, target, now.shelf.packages, past)
        return there

    def brought(version: str) -> Brought:
        """What the installation of a version brings: nothing to the kernel where it is the loaded one, or in use."""
        if now.loaded == Loaded(version, target.flavour):
            return Brought(brings(now.gpus, INSTALLED, loads=False))
        rebooted = _obstacle(target, now, past, installs=True) is not None
        effects = brings(now.gpus, f"{INSTALLED} and {REBOOTED if rebooted else LOADED}", loads=not rebooted)
        return Brought(effects, "gpu" if now.loaded else "none")

    coming = plan_install(todo, target, now.shelf, past, brought)
    if coming is None:
        return there if fits else None
    if not coming.planned and not fits:
        say_what_is_wrong(todo, target, coming.version, now.shelf)
        return None
    return Loaded(coming.version, target.flavour) if coming.planned else there


def _plan_loaded(todo: Todo, target: Target, coming: Loaded, now: Now, past: Past) -> None:
    """Plan that the driver on the disk is the loaded one, then what goes with it."""
    installs = not is_on_disk(target, now.on_disk, now.library)
    if now.loaded == coming:
        if not installs:
            _plan_upkeep(todo, now, past)
        return
    obstacle = _obstacle(target, now, past, installs)
    from .nvidia_driver_swap import (
        Use,
        drop_nodes,
        others_of,
        owed_modules,
        plan_load,
        plan_unload,
        restarts,
        start_former,
        start_service,
    )

    if obstacle:
        if not installs:  # behind the installation the runner looks again: one that fails asks for no reboot
            todo.wait(*obstacle)
        if now.loaded:
            start_former(todo, past)
        return
    if LANE in past.failed and now.only_signed and now.on_disk and now.on_disk.signer:
        todo.note(_untrusted(now.only_signed, now.on_disk))
    use = now.use or Use()
    others = tuple(dict.fromkeys((*others_of(use), *owed_modules(past))))
    after = f"{INSTALLED} and {LOADED}" if installs else f"the driver is {LOADED}"
    with todo.lane(LANE):
        if now.loaded:
            plan_unload(todo, use, now.loaded, past)
        drop_nodes(todo, now.stale, "gpu" if now.loaded else "none")
        plan_load(todo, now.gpus, after, past, others, "gpu" if now.loaded else "none")
    for service in restarts(use, past):
        with todo.lane(service):
            todo.add(start_service(service))


def _obstacle(target: Target, now: Now, past: Past, installs: bool) -> tuple[str, str] | None:
    """What keeps the driver on the disk from being loaded now: the reason and the message of a wait."""
    if now.loaded is None and now.native.loaded:
        owner = " and ".join(now.native.loaded)
        return "RebootRequired", f"{UNIT}: {owner} has the GPUs; reboot the node to load branch {target.branch}"
    if now.only_signed and not installs and now.on_disk and not now.on_disk.signer:
        module = now.on_disk.path or "nvidia"
        message = (
            f"{UNIT}: {now.only_signed}, and the module {module} is not signed, so the kernel does not take it: "
            "install modules that the distribution signs, or sign it with a key that the firmware knows "
            "(mokutil --import)"
        )
        return "NotReady", message
    return _in_use(target, now, past) if now.loaded else None


def _untrusted(only_signed: str, on_disk: OnDisk) -> str:
    """What may be behind a signed module that did not load: dkms signs with a key of the host's own."""
    return (
        f"{only_signed}, and {on_disk.path or 'the module nvidia'} is signed by {on_disk.signer!r}: where the kernel "
        "says that the key was rejected, have the firmware take it (mokutil --import of its certificate, then a reboot "
        "at which it is confirmed), or install modules that the distribution signs"
    )


def _in_use(target: Target, now: Now, past: Past) -> tuple[str, str] | None:
    """Who keeps the loaded driver in the kernel, or what came of taking it out in this boot."""
    from .nvidia_driver_swap import claimed_by, unload_name, users

    assert now.loaded is not None
    why = [*users(now.use), claimed_by(now.use)] if now.use else []
    said = past.tried.get(unload_name(now.loaded))
    if said is not None:
        why.append(said or f"it was taken out, and the kernel has {now.loaded.version}, {now.loaded.flavour} again")
    named = "; ".join(clause for clause in why if clause)
    if not named:
        return None
    disk = f"{now.on_disk.version}, {now.on_disk.flavour}" if now.on_disk else target.words
    message = (
        f"{UNIT}: driver {now.loaded.version} is in use; reboot the node to load branch {target.branch} "
        f"(loaded: {now.loaded.version}, {now.loaded.flavour}; on the disk: {disk}; in use by {named})"
    )
    return "RebootRequired", message


def _plan_upkeep(todo: Todo, now: Now, past: Past) -> None:
    """The right driver is loaded: unified memory, what a killed pass took out, device nodes, persistenced."""
    if UVM not in now.modules or now.idle or past.owed or past.tried:
        _plan_mending(todo, now, past)
    with todo.lane(NODES_LANE):
        make_nodes(todo, now.nodes)
    with todo.lane(PERSISTENCED):
        keep_running(todo, now.persistenced)


def _plan_mending(todo: Todo, now: Now, past: Past) -> None:
    """Load and start what is missing beside the right driver."""
    from .nvidia_driver_swap import drop_nodes, load_again, load_uvm, owed_modules, start_service

    with todo.lane(LANE):
        if UVM not in now.modules:
            drop_nodes(todo, now.stale)
            todo.add(load_uvm())
        for name in owed_modules(past):
            if name not in now.modules:
                load_again(todo, name, past)
    for service in now.idle:
        with todo.lane(service):
            todo.add(start_service(service))
