# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with a loaded driver: nouveau kept out, its device nodes, nvidia-persistenced."""

from __future__ import annotations

from typing import NamedTuple

from ..core.plan import Past, Todo
from ..core.step import File, run
from . import initramfs, systemd
from .files import HEADER, keep
from .initramfs import Initramfs
from .nvidia_nodes import CONTROL, CONTROL_MINOR, GPU_NAMES, MODESET, MODESET_MINOR, UVM_NAME, UVM_NODES, major_of
from .systemd_seen import Service
from .unit_names import NVIDIA_DRIVER as UNIT

BLACKLIST = "/etc/modprobe.d/bcd-nouveau.conf"
# The kernel's own drivers for these GPUs, the old one and the one in Rust. One of them has the GPU, or ours has.
NATIVE = ("nouveau", "nova_core")
PERSISTENCED = "nvidia-persistenced"
LANE, NODES_LANE = "driver", "device nodes"
UVM = "nvidia_uvm"  # the module of unified memory, without which CUDA fails


class Native(NamedTuple):
    """What keeps nouveau out, and whether it is loaded."""

    file: File | None
    loaded: tuple[str, ...]
    initramfs: Initramfs


class Node(NamedTuple):
    """A device node that the driver's programs need."""

    path: str
    major: int
    minor: int


class Permissions(NamedTuple):
    """Who may open the nodes, by the driver's own parameters."""

    mode: int = 0o666
    uid: int = 0
    gid: int = 0


class Nodes(NamedTuple):
    """The nodes that are missing, whether NVIDIA's program makes them, and how; None: that is left to others."""

    missing: tuple[Node, ...] = ()
    nvidia_modprobe: bool = False
    permissions: Permissions | None = Permissions()


# -- nouveau


def render_blacklist() -> str:
    """modprobe.d: kept from loading by itself, and from its display part where it is loaded by name."""
    lines = [f"blacklist {name}\n" for name in NATIVE]
    return HEADER + "".join(lines) + "options nouveau modeset=0\n"


def keep_out(todo: Todo, native: Native, past: Past) -> bool:
    """Plan the file; whether the initramfs has to be rebuilt after all else (see `rebuild`)."""
    wrote = keep(todo, BLACKLIST, render_blacklist(), native.file, owes=(initramfs.DEBT,))
    return wrote or initramfs.DEBT in past.owed


def rebuild(todo: Todo, native: Native) -> None:
    """Plan the rebuild: nouveau is loaded from the initramfs before any file of the root is read."""
    step = initramfs.rebuild(native.initramfs, BLACKLIST, kept=True)
    if step is None:
        todo.note(initramfs.missing(BLACKLIST))
    else:
        todo.add(step)


# -- device nodes


def parse_permissions(params: dict[str, str]) -> Permissions | None:
    """DeviceFileMode, UID and GID of /proc/driver/nvidia/params, decimal; None for ModifyDeviceFiles 0."""
    numbers = {key: int(value) for key, value in params.items() if value.isdigit()}
    if numbers.get("ModifyDeviceFiles") == 0:
        return None
    return Permissions(
        numbers.get("DeviceFileMode", 0o666), numbers.get("DeviceFileUID", 0), numbers.get("DeviceFileGID", 0)
    )


def needed(majors: dict[str, int], minors: tuple[int, ...], modeset: bool = False) -> tuple[Node, ...]:
    """The nodes that a loaded driver needs: its own, one a GPU, and those of unified memory, which CUDA asks for.

    `modeset`: the module nvidia_modeset is loaded too, and has one of its own.
    """
    found = []
    major = major_of(majors, GPU_NAMES)
    if major is not None:
        found = [Node(CONTROL, major, CONTROL_MINOR), *(Node(f"/dev/nvidia{minor}", major, minor) for minor in minors)]
        found += [Node(MODESET, major, MODESET_MINOR)] if modeset else []
    if UVM_NAME in majors:
        found += [Node(path, majors[UVM_NAME], minor) for path, minor in UVM_NODES]
    return tuple(found)


def make_nodes(todo: Todo, nodes: Nodes) -> None:
    """Plan the missing nodes, by NVIDIA's own program where it is installed."""
    if nodes.missing and nodes.permissions is None:
        paths = ", ".join(node.path for node in nodes.missing)
        todo.wait(
            "NotReady",
            f"{UNIT}: {paths} is missing, and NVreg_ModifyDeviceFiles=0 leaves it to this host's own rules: make it by "
            "them (a rule of udev, say)",
        )
    made: set[tuple[str, ...]] = set()
    for node in nodes.missing if nodes.permissions else ():
        uvm = any(node.path == path for path, _minor in UVM_NODES)
        by_program = ("nvidia-modprobe", "-u", "-c", "0") if uvm else ("nvidia-modprobe", "-c", str(node.minor))
        mode, uid, gid = nodes.permissions or Permissions()
        by_hand = ("mknod", "-m", f"{mode:04o}", node.path, "c", str(node.major), str(node.minor))
        argv = by_program if nodes.nvidia_modprobe else by_hand
        if argv not in made:
            made.add(argv)
            todo.add(run(argv, f"make the device node {node.path}"))
        if not nodes.nvidia_modprobe and (uid or gid):
            todo.add(run(("chown", f"{uid}:{gid}", node.path), f"give {node.path} to its owner {uid}:{gid}"))


# -- nvidia-persistenced


def keep_running(todo: Todo, service: Service | None) -> None:
    """Plan that nvidia-persistenced runs now and at each boot, where it is installed: GPUs stay ready between jobs."""
    if service is None or service.load == "not-found":
        return
    unit = f"{PERSISTENCED}.service"
    if service.is_masked:
        todo.note(f"{PERSISTENCED} is masked and stays so: run systemctl unmask {unit} to have GPUs stay initialized")
        return
    if service.enabled == "disabled":
        todo.add(systemd.control("enable", unit, f"enable {PERSISTENCED}"))
    if not service.runs:
        todo.add(systemd.control("start", unit, f"start {PERSISTENCED}"))
