# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver where the driver is not as asked for: its packages, what is loaded, and what keeps it in the kernel."""

from __future__ import annotations

from ..core.plan import Past, Plan, Todo
from ..core.step import known_after
from .nvidia_driver import Now, Settings, fits, target_of
from .nvidia_driver_swap import (
    Use,
    brings,
    claimed_by,
    drop_nodes,
    load_again,
    load_uvm,
    others_of,
    owed_modules,
    plan_load,
    plan_unload,
    restarts,
    start_former,
    start_service,
    unload_name,
    users,
)
from .nvidia_driver_target import INSTALL_DEBT, OnDisk, Target
from .nvidia_driver_upkeep import LANE, NODES_LANE, PERSISTENCED, UVM
from .nvidia_driver_version import Loaded
from .unit_names import NVIDIA_DRIVER as UNIT

# The clauses after which more is known.
INSTALLED = "the driver is installed"
LOADED = f"{INSTALLED} and loaded"
REBOOTED = f"{INSTALLED} and the node is rebooted"


def plan_unknown(settings: Settings, now: Now, past: Past) -> Plan:
    """In check mode, behind an installation: what waits for a reboot, or that more is known later."""
    todo = Todo()
    target, notes = target_of(settings, now.gpus, now.loaded)
    todo.note(*notes)
    obstacle = _obstacle(target, now, past, installs=True) if now.unknown == REBOOTED else None
    if obstacle:
        todo.wait(*obstacle)
    else:
        todo.add(known_after(f"{NODES_LANE} and {PERSISTENCED}", now.unknown))
    return todo.plan()


def is_claimed(todo: Todo, target: Target, now: Now) -> bool:
    """Whether live holds or pending releases keep packages from being changed; says which."""
    if now.loaded is None or now.use is None or fits(target, now):
        return False
    claims = claimed_by(now.use)
    if claims:
        todo.wait(
            "Busy",
            f"{UNIT}: nothing is installed while GPUs are held ({claims}): the driver {target.words} follows when "
            "they are released",
        )
    return bool(claims)


def change(todo: Todo, target: Target, now: Now, past: Past) -> bool:
    """Plan the packages, then the loaded driver; whether that is the right one already, and only its upkeep is left."""
    coming = _plan_disk(todo, target, now, past)
    if coming is None:
        return False
    if now.loaded == coming:
        return fits(target, now)
    _plan_loaded(todo, target, coming, now, past)
    return False


def _plan_disk(todo: Todo, target: Target, now: Now, past: Past) -> Loaded | None:
    """Plan the packages; the driver that is then on the disk, None where there will be none to load."""
    right = fits(target, now)
    there = Loaded(now.on_disk.version, now.on_disk.flavour) if now.on_disk else None
    if now.shelf is None:
        return there
    from .nvidia_driver_packages import Brought, keep_held, plan_install, say_what_is_wrong

    if right and INSTALL_DEBT not in past.owed:
        keep_held(todo, target, now.shelf.packages, past)
        return there

    def brought(version: str) -> Brought:
        """What the installation of a version brings: nothing to the kernel where it is the loaded one, or in use."""
        if now.loaded == Loaded(version, target.flavour):
            return Brought(brings(now.gpus, INSTALLED, loads=False))
        rebooted = _obstacle(target, now, past, installs=True) is not None
        effects = brings(now.gpus, REBOOTED if rebooted else LOADED, loads=not rebooted)
        return Brought(effects, "gpu" if now.loaded else "none")

    coming = plan_install(todo, target, now.shelf, past, brought)
    if coming is None:
        return there if right else None
    if not coming.planned and not right:
        say_what_is_wrong(todo, target, coming.version, now.shelf, now.astray)
        return None
    return Loaded(coming.version, target.flavour) if coming.planned else there


def _plan_loaded(todo: Todo, target: Target, coming: Loaded, now: Now, past: Past) -> None:
    """Plan that the driver on the disk is the loaded one."""
    installs = not fits(target, now)
    obstacle = _obstacle(target, now, past, installs)
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
    after = LOADED if installs else "the driver is loaded"
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
        return "RebootRequired", f"{UNIT}: {owner} has the GPUs; reboot the node to load {target.asked}"
    if now.only_signed and not installs and now.on_disk and not now.on_disk.signer:
        module = now.on_disk.path or "nvidia"
        message = (
            f"{UNIT}: {now.only_signed}, and the module {module} is not signed, so the kernel does not take it: "
            "install modules that the distribution signs, or sign it with a key that the firmware knows "
            "(mokutil --import)"
        )
        return "NotReady", message
    return _in_use(target, now, past)


def _untrusted(only_signed: str, on_disk: OnDisk) -> str:
    """What may be behind a signed module that did not load: dkms signs with a key of the host's own."""
    return (
        f"{only_signed}, and {on_disk.path or 'the module nvidia'} is signed by {on_disk.signer!r}: where the kernel "
        "says that the key was rejected, have the firmware take it (mokutil --import of its certificate, then a reboot "
        "at which it is confirmed), or install modules that the distribution signs"
    )


def _in_use(target: Target, now: Now, past: Past) -> tuple[str, str] | None:
    """Who keeps the loaded driver in the kernel, or what came of taking it out in this boot."""
    if now.loaded is None:
        return None
    why = [*users(now.use), claimed_by(now.use)] if now.use else []
    said = past.tried.get(unload_name(now.loaded))
    if said is not None:
        why.append(said or f"it was taken out, and the kernel has {now.loaded.version}, {now.loaded.flavour} again")
    named = "; ".join(clause for clause in why if clause)
    if not named:
        return None
    disk = f"{now.on_disk.version}, {now.on_disk.flavour}" if now.on_disk else target.words
    message = (
        f"{UNIT}: driver {now.loaded.version} is in use; reboot the node to load {target.asked} "
        f"(loaded: {now.loaded.version}, {now.loaded.flavour}; on the disk: {disk}; in use by {named})"
    )
    return "RebootRequired", message


def mend(todo: Todo, now: Now, past: Past) -> None:
    """Load and start what is missing beside the right driver."""
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
