# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's kernel modules: who uses them, taken out leaf first, loaded again.

What is taken out or stopped on the way is a debt. No exit status settles one: it stands until the host shows the module
loaded and the service active.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect, Step, remove, run
from . import systemd
from .debts import debt, owed
from .gpu_chips import PciGpu
from .nvidia_driver_upkeep import UVM
from .nvidia_driver_version import LIBRARY_FOLDERS, SONAME, VERSION_FILE, Loaded
from .nvidia_nodes import UVM_NODES
from .unit_names import FABRIC_MANAGER, GPU_SHARING

if TYPE_CHECKING:
    from .gpu_users import Holder
    from .holds import Hold

AGAIN = "load again"  # what came of loading a module that stood on the former driver
ROOTS = ("nvidia", "nvidia_current")  # Debian's own packages have the second name
# Which goes first where nothing else decides; what is not listed goes before them all.
LEAF_FIRST = ("nvidia_peermem", "nv_peer_mem", "gdrdrv", "nvidia_fs", UVM, "nvidia_drm", "nvidia_modeset", "nvidia")
OWN = ("nvidia_peermem", "nvidia_drm", "nvidia_modeset")  # come with every driver
# Services that are stopped for a swap, the programs by which they have GPUs open, and the unit of ours that starts
# the service again by itself.
SERVICES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "bcd-mps": (("nvidia-cuda-mps-control", "nvidia-cuda-mps-server"), GPU_SHARING),
    "nvidia-dcgm": (("nv-hostengine",), ""),
    "nvidia-fabricmanager": (("nv-fabricmanager",), FABRIC_MANAGER),
    "nvidia-persistenced": (("nvidia-persistenced",), ""),
}
PROGRAMS = ("nvidia-smi", "nvidia-modprobe", "nvidia-cuda-mps-control", "nvidia-persistenced", "nvidia-ctk cdi")


class Module(NamedTuple):
    """A loaded module: its name as the kernel has it, its reference count, and the modules that stand on it."""

    name: str
    refcnt: int
    holders: tuple[str, ...] = ()

    @property
    def plain(self) -> str:
        """The name that NVIDIA gives it."""
        return self.name.replace("nvidia_current", "nvidia")

    @property
    def open_by(self) -> int:
        """References that no module has: open device nodes, a console."""
        return self.refcnt - len(self.holders)


class Use(NamedTuple):
    """Who uses the loaded driver. `stack`: its modules; `nodes`: processes by the device node that they have open.

    `claims`: live holds and pending releases. `services`: those of SERVICES that run.
    """

    stack: tuple[Module, ...] = ()
    nodes: Mapping[str, tuple[Holder, ...]] = {}
    claims: tuple[Hold, ...] = ()
    services: tuple[str, ...] = ()


def leaf_first(stack: tuple[Module, ...]) -> tuple[Module, ...]:
    """The modules in an order in which nothing stands on the one that is next."""
    left = {module.name: module for module in stack}
    order = []
    while left:
        free = [module for module in left.values() if not set(module.holders) & left.keys()] or list(left.values())
        first = min(free, key=lambda module: (_rank(module), module.name))
        order.append(left.pop(first.name))
    return tuple(order)


def _rank(module: Module) -> int:
    return LEAF_FIRST.index(module.plain) if module.plain in LEAF_FIRST else -1


def claimed_by(use: Use) -> str:
    """The live holds and pending releases in words, "" when there are none."""
    from .holds import claim

    return "; ".join(map(claim, use.claims))


def users(use: Use) -> tuple[str, ...]:
    """Who keeps the modules in use and is not stopped for a swap: processes by name, modules by their count."""
    ours = {program for service in use.services for program in SERVICES[service][0]}
    holders = {holder.pid: holder for found in use.nodes.values() for holder in found}
    strangers = [holder for _pid, holder in sorted(holders.items()) if holder.program not in ours]
    found = [f"process {holder.pid} ({holder.program})" for holder in strangers]
    for module in leaf_first(use.stack):
        # What a service has open counts here too, and goes with it: then only the unloading tells.
        by_service = bool(use.services) and module.plain in ("nvidia", UVM, "nvidia_modeset")
        if module.open_by > 0 and not by_service and not (strangers and module.plain in ("nvidia", UVM)):
            found.append(f"the module {module.name} (refcnt {module.refcnt})")
    return tuple(found)


# -- steps


def unload_name(loaded: Loaded) -> str:
    """Under which name it is remembered, for this boot, what came of unloading a driver."""
    return f"unload {loaded.version} {loaded.flavour}"


def plan_unload(todo: Todo, use: Use, loaded: Loaded, past: Past) -> None:
    """Stop what serves the GPUs, then take the modules out, leaf first. What is stopped or was loaded is owed again."""
    for service in use.services:
        managed = SERVICES[service][1] in past.applied
        todo.add(
            systemd.control(
                "stop",
                f"{service}.service",
                f"stop {service}, to take the driver {loaded.version} out",
                disruption="gpu",
                owes=() if managed else (debt("start", service),),
            )
        )
    for module in leaf_first(use.stack):
        todo.add(
            run(
                ("rmmod", module.name),
                f"unload the module {module.name}",
                disruption="gpu",
                tries=unload_name(loaded),
                owes=() if module.plain in (*ROOTS, UVM) else (debt("load", module.plain),),
                effects=(Effect("gone", f"/sys/module/{module.name}"),),
            )
        )


def drop_nodes(todo: Todo, stale: tuple[str, ...], disruption: str = "none") -> None:
    """Remove the nodes of unified memory: its module gets a number anew, and an old node keeps the old one."""
    for path in stale:
        todo.add(remove(path, f"remove {path}: its number may change", disruption=disruption))


def plan_load(
    todo: Todo, gpus: tuple[PciGpu, ...], after: str, past: Past, others: tuple[str, ...], disruption: str
) -> None:
    """Load nvidia and nvidia_uvm, then `others`, which were loaded on top of the driver before."""
    todo.add(
        run(
            ("modprobe", "nvidia"),
            "load the module nvidia",
            disruption=disruption,
            effects=(*brings(gpus, after), *(Effect("unknown", path, after) for path, _minor in UVM_NODES)),
        ),
        load_uvm(disruption),
    )
    for name in others:
        load_again(todo, name, past, disruption)


def load_uvm(disruption: str = "none") -> Step:
    """Load what CUDA needs beside the driver itself."""
    return run(("modprobe", UVM), f"load the module {UVM}", disruption=disruption)


def load_again(todo: Todo, name: str, past: Past, disruption: str = "none") -> None:
    """Load a module that stood on the former driver.

    One that is not NVIDIA's driver's own may not fit the new one: that is said, and stops nothing.
    """
    tries = "" if name in OWN else debt(AGAIN, name)
    said = past.tried.get(tries)
    if said:
        todo.note(f"{name} was loaded on the former driver, and cannot be loaded on this one: {said}")
    elif said is None:
        todo.add(run(("modprobe", name), f"load the module {name} again", disruption=disruption, tries=tries))


def owed_modules(past: Past) -> tuple[str, ...]:
    """The modules that a pass took out and has not loaded again, or could not in this boot, in the order of loading."""
    names = {*owed(past.owed, "load"), *owed(past.tried, AGAIN)}
    return tuple(sorted(names, key=lambda name: (-_rank(Module(name, 0)), name)))


def others_of(use: Use) -> tuple[str, ...]:
    """The modules on top of the driver that a swap loads again, in the order of loading."""
    return tuple(module.plain for module in reversed(leaf_first(use.stack)) if module.plain not in (*ROOTS, UVM))


def restarts(use: Use, past: Past) -> tuple[str, ...]:
    """The services to start after a swap: those that it stops, but for those that another unit of ours starts."""
    stopped = [name for name in use.services if SERVICES[name][1] not in past.applied]
    return tuple(sorted({*stopped, *owed_services(past)}))


def owed_services(past: Past) -> tuple[str, ...]:
    """The services that a pass stopped and did not start again."""
    return owed(past.owed, "start")


def plan_return(
    todo: Todo, gpus: tuple[PciGpu, ...], modules: frozenset[str], stale: tuple[str, ...], past: Past
) -> None:
    """Plan that what a killed pass took out of the kernel or stopped comes back when the unit has left.

    `gpus` are those that have no driver now: the one on the disk is loaded for them. `modules` are loaded.
    """
    lost, services = owed_modules(past), owed_services(past)
    if UVM not in modules and (lost or services):
        drop_nodes(todo, stale)
        if gpus:
            plan_load(todo, gpus, "the driver is loaded", past, (), "none")
        else:
            todo.add(load_uvm())
    for name in lost:
        if name not in modules:
            load_again(todo, name, past)
    for name in services:
        with todo.lane(name):
            todo.add(start_service(name, pays=(debt("start", name),)))


def start_former(todo: Todo, past: Past) -> None:
    """Start what a pass stopped and left so, while the former driver stays: once a boot, as it may not fit any more."""
    for name in owed_services(past):
        tried = f"start {name} on the former driver"
        if tried not in past.tried:
            with todo.lane(name):
                todo.add(start_service(name, tries=tried))


def start_service(name: str, *, pays: tuple[str, ...] = (), tries: str = "") -> Step:
    """Start one service."""
    return systemd.control("start", f"{name}.service", f"start {name}", pays=pays, tries=tries)


def brings(gpus: tuple[PciGpu, ...], after: str, loads: bool = True) -> tuple[Effect, ...]:
    """What is not known before the driver is installed and, with `loads`, loaded; `after` is that clause."""
    disk = (
        *(Effect("unknown", f"{folder}/{SONAME}", after) for folder in LIBRARY_FOLDERS),
        *(Effect("program", program, after) for program in (*PROGRAMS, "modinfo")),
    )
    if not loads:
        return disk
    nodes = ("nvidiactl", "nvidia-modeset", "nvidia-caps", "nvidia-nvswitchctl")
    places = (
        "/proc/driver/nvidia",
        "/proc/driver/nvidia-nvswitch",
        *(f"/sys/module/{name}" for name in (*ROOTS, UVM, "nvidia_modeset", "nvidia_drm")),
        *(f"/dev/{name}" for name in nodes),
        *(path for path, _minor in UVM_NODES),
        *(f"/dev/nvidia{number}" for number in range(len(gpus))),
    )
    return (Effect("unknown", VERSION_FILE, after), *(Effect("appears", place, after) for place in places), *disk)
