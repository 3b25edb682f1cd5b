# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with a loaded driver: nouveau kept out, and nvidia-persistenced."""

from __future__ import annotations

from typing import NamedTuple

from ..core.plan import Past, Todo
from ..core.step import File
from . import initramfs
from .files import HEADER, keep
from .initramfs import Initramfs
from .service_seen import Service

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


# -- nouveau


def render_blacklist() -> str:
    """modprobe.d: kept from loading by itself, and from its display part where it is loaded by name."""
    lines = [f"blacklist {name}\n" for name in NATIVE]
    return HEADER + "".join(lines) + "options nouveau modeset=0\n"


def keep_out(todo: Todo, native: Native, past: Past) -> bool:
    """Plan the file; whether the initramfs has to be rebuilt after all else (see nvidia_driver_repair)."""
    wrote = keep(todo, BLACKLIST, render_blacklist(), native.file, owes=(initramfs.DEBT,))
    return wrote or initramfs.DEBT in past.owed


# -- nvidia-persistenced


def keep_running(todo: Todo, service: Service | None) -> None:
    """Plan that nvidia-persistenced runs now and at each boot, where it is installed: GPUs stay ready between jobs."""
    if service is None or service.load == "not-found":
        return
    unit = f"{PERSISTENCED}.service"
    if service.is_masked:
        todo.note(f"{PERSISTENCED} is masked and stays so: run systemctl unmask {unit} to have GPUs stay initialized")
        return
    verbs = (("enable", service.enabled == "disabled"), ("start", not service.runs))
    for verb in (verb for verb, is_due in verbs if is_due):
        from .systemd import control

        todo.add(control(verb, unit, f"{verb} {PERSISTENCED}"))
