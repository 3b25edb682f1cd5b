# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of a simulated host: tests.gpu's machine in a file of the tree, its kernel files, and its programs.

Which driver is in the kernel is what /sys/module shows; what lies on the disk is what packages brought (packages.py).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .machine import Machine, at, drop, keep, load, names, need, put, read, state, there

if TYPE_CHECKING:
    from tests.gpu.model import Machine as Gpus

Answer = tuple[int, str, str]
STATE = "/var/lib/sim/gpus.json"
SHOWN = "/var/lib/sim/gpu-files.json"
# /usr is the machine's own: the driver's library lies here, and /usr/lib has a link to it.
LIBRARY = "/var/lib/sim/lib"
SONAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
MODULES = ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")
AT_BOOT = ("nvidia", "nvidia_uvm")
SERVICES = {
    "nvidia-persistenced.service": "nvidia-persistenced",
    "nvidia-dcgm.service": "nv-hostengine",
    "nvidia-fabricmanager.service": "nv-fabricmanager",
}
SWITCHES = "/proc/driver/nvidia-nvswitch/devices"
CHARS, RULES = "/dev/char", "/etc/udev/rules.d"
# What udev is told when a module came.
EVENTS = {"nvidia": 'DEVPATH=="/bus/pci/drivers/nvidia"', "nvidia_uvm": 'KERNEL=="nvidia_uvm"'}
PRUNED = ("/proc/driver", "/dev/nvidia-caps", *(f"/proc/{digit}" for digit in range(1, 10)))


def build(root: str, what: Machine) -> None:
    """Put the GPUs on the bus; the driver comes with its packages."""
    from tests.gpu.model import Machine as Gpus

    machine = Gpus.from_products(what.gpus)
    machine.loaded = machine.library = machine.disk = None
    machine.uvm = machine.modeset = False
    put(root, STATE, machine.dump())
    for name in SONAMES:
        os.symlink(f"{LIBRARY}/{name}", at(root, f"/usr/lib/{name}"))
    show(root, machine)


def any_of(root: str) -> bool:
    """Whether the machine has GPUs."""
    return there(root, STATE)


def gpus(root: str) -> Gpus:
    """The GPUs as they are now, with the services that hold them."""
    from tests.gpu.model import Machine as Gpus

    from .systemd import MEMORY

    machine = Gpus.load(need(root, STATE))
    active = state(root, MEMORY).get("active", {})
    others = [name for name in machine.clients if name not in SERVICES.values()]
    machine.clients = others + [name for unit, name in SERVICES.items() if active.get(unit) == "active"]
    if load(root).nvswitch:
        up = "nv-fabricmanager" in machine.clients
        for card in machine.cards:
            if card.kind.architecture == "Hopper":
                card.fabric = "Completed" if up else "In Progress"
    return machine


def save(root: str, machine: Gpus) -> None:
    """Keep them, and show them in /proc, /sys and /dev."""
    if machine.dump() != read(root, STATE):
        put(root, STATE, machine.dump())
    show(root, machine)


@contextlib.contextmanager
def editing(root: str) -> Iterator[Gpus]:
    """The GPUs, to be changed and kept."""
    machine = gpus(root)
    yield machine
    save(root, machine)


def settle(root: str) -> None:
    """Show who holds the GPUs, after services came or went."""
    if any_of(root):
        save(root, gpus(root))


def show(root: str, machine: Gpus) -> None:
    """Write the kernel's files of the GPUs, and take away those that are no more."""
    from tests.gpu import nodes

    files = {path: text for path, text in nodes.files(machine, LIBRARY).items() if not path.startswith("/sys/module/")}
    files.update(_switches(root, machine))
    links = nodes.links(machine, LIBRARY)
    before = state(root, SHOWN)
    for path in before:
        if path not in files and path not in links:
            drop(root, path)
            _prune(root, os.path.dirname(path))
    for path, text in files.items():
        if before.get(path) != text or not there(root, path):
            put(root, path, text)
    for path, target in links.items():
        if before.get(path) != target:
            drop(root, path)
            os.makedirs(os.path.dirname(at(root, path)), exist_ok=True)
            os.symlink(target, at(root, path))
    after = {**files, **links}
    if after != before:
        keep(root, SHOWN, after)
    _counts(root, machine)


def _switches(root: str, machine: Gpus) -> dict[str, str]:
    """NVSwitches, which the driver shows once it is loaded."""
    count = load(root).nvswitch if machine.loaded else 0
    text = (
        "BIOS Version: 96.10.6B.00.01\nUUID: SWX-00000000-0000-0000-0000-00000000000{0}\nPhysical location ID: 000{0}\n"
    )
    return {f"{SWITCHES}/0000:{5 + one:02x}:00.0/information": text.format(one) for one in range(count)}


def _prune(root: str, folder: str) -> None:
    while folder.startswith(PRUNED) and there(root, folder) and not names(root, folder):
        os.rmdir(at(root, folder))
        folder = os.path.dirname(folder)


def _counts(root: str, machine: Gpus) -> None:
    """Reference counts by processes: the modules on a module count by themselves."""
    from .modules import hold

    held = state(root, "/var/lib/sim/module_users.json")
    computing = sum(len(card.processes) for card in machine.cards)
    counts = {"nvidia": computing + len(machine.clients), "nvidia_uvm": computing}
    for name, count in counts.items():
        users = count if there(root, f"/sys/module/{name}") else 0
        if held.get(name, 0) != users:
            hold(root, name, users)


# -- the kernel


def module_came(root: str, name: str) -> None:
    """A module of the driver was loaded."""
    with editing(root) as machine:
        if name == "nvidia":
            machine.loaded, machine.flavour = machine.disk, machine.disk_flavour
        _flag(machine, name, True)
    for path in names(root, RULES):
        for line in (read(root, f"{RULES}/{path}") or "").splitlines():
            if name in EVENTS and EVENTS[name] in line and not line.startswith("#"):
                _run_of_rule(root, shlex.split(line.partition('RUN+="')[2].rstrip('"')))


def _run_of_rule(root: str, argv: list[str]) -> None:
    """udev runs a program, whose failure stops nothing."""
    from . import standins

    name = os.path.basename(argv[0])
    player = standins.stand_in(name) if name in standins.GPUS and there(root, f"/usr/local/sbin/{name}") else None
    if player:
        player(root, argv[1:])


def module_went(root: str, name: str) -> None:
    """A module of the driver was taken out."""
    with editing(root) as machine:
        if name == "nvidia":
            machine.unload()
        _flag(machine, name, False)


def _flag(machine: Gpus, name: str, on: bool) -> None:
    if name in ("nvidia_uvm", "nvidia_modeset", "nvidia_drm"):
        setattr(machine, name.partition("_")[2], on)


def go_down(root: str) -> None:
    """What a reboot does to the GPUs, before anything is loaded again."""
    if not any_of(root):
        return
    for name in names(root, CHARS):
        drop(root, f"{CHARS}/{name}")
    with editing(root) as machine:
        disk, machine.disk = machine.disk, None
        machine.reboot()
        machine.disk = disk


def modinfo(root: str, name: str) -> list[tuple[str, str]]:
    """The fields of a module of the driver, when the running kernel has its file."""
    from .modules import available, release

    if name not in MODULES or name not in available(root):
        return []
    machine = gpus(root)
    open_one = machine.disk_flavour == "open" or name == "nvidia_uvm"
    path = f"/lib/modules/{release(root)}/updates/dkms/{name.replace('_', '-')}.ko.zst"
    fields = [("filename", path), ("version", str(machine.disk)), ("supported", "external")]
    return [*fields, ("license", "Dual MIT/GPL" if open_one else "NVIDIA"), ("name", name)]


# -- programs


def nvidia_smi(root: str, argv: list[str]) -> Answer:
    """nvidia-smi."""
    from tests.gpu.model import Hang

    machine = gpus(root)
    before = machine.dump()
    try:
        rc, text = machine.smi(("nvidia-smi", *argv))
    except Hang:
        put(root, STATE, machine.dump())
        time.sleep(3600)
        raise
    if machine.dump() != before:
        save(root, machine)
    return rc, text, ""


def nvidia_ctk(root: str, argv: list[str]) -> Answer:
    """nvidia-ctk."""
    from tests.gpu import tools

    machine = gpus(root)
    rc, out, err = tools.ctk(machine, tuple(argv), LIBRARY, "/usr/local/sbin/nvidia-cdi-hook")
    if rc == 0 and "create-dev-char-symlinks" in argv:
        os.makedirs(at(root, CHARS), exist_ok=True)
        for path, target in tools.char_links(machine).items():
            if not os.path.lexists(at(root, path)):
                os.symlink(target, at(root, path))
    where = tools.output_of(tuple(argv))
    if rc == 0 and where:
        put(root, where, out)
        out = ""
    return rc, out, err


def mps_control(root: str, argv: list[str]) -> Answer:
    """nvidia-cuda-mps-control, with the environment that it was given."""
    from tests.gpu import tools

    stdin = "" if argv[:1] in (["-d"], ["-f"]) else sys.stdin.read()
    machine = gpus(root)
    rc, out, err = tools.mps(machine, tuple(argv), stdin, dict(os.environ))
    save(root, machine)
    return rc, out, err


def service_ended(root: str, environment: dict[str, str]) -> None:
    """The manager ended what was left of a service: an MPS daemon goes with it."""
    pipe = environment.get("CUDA_MPS_PIPE_DIRECTORY", "")
    if pipe and any_of(root):
        with editing(root) as machine:
            machine.mps.pop(pipe, None)


def nvidia_modprobe(root: str, argv: list[str]) -> Answer:
    """nvidia-modprobe: makes the device nodes that are missing."""
    from tests.gpu import nodes

    for path, text in nodes.files(gpus(root), LIBRARY).items():
        if path.startswith("/dev/nvidia") and not there(root, path):
            put(root, path, text)
    return 0, "", ""


def daemon(root: str, argv: list[str]) -> Answer:
    """nvidia-persistenced, nv-fabricmanager, nv-hostengine: they fail without a driver, and are told as services."""
    machine = gpus(root)
    if machine.loaded is None or machine.loaded != machine.library:
        return 1, "", "Failed to initialize NVML: the driver is not loaded, or is of another version\n"
    return 0, "", ""
