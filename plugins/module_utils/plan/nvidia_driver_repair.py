# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with a loaded driver where it is missing: device nodes; and the initramfs that keeps nouveau out."""

from __future__ import annotations

from ..core.plan import Todo
from ..core.step import run
from . import initramfs_change
from .nvidia_driver_nodes import Nodes, Permissions
from .nvidia_driver_upkeep import BLACKLIST, Native
from .nvidia_nodes import UVM_NODES
from .unit_names import NVIDIA_DRIVER as UNIT


def rebuild(todo: Todo, native: Native) -> None:
    """Plan the rebuild: nouveau is loaded from the initramfs before any file of the root is read."""
    if native.initramfs.is_known:
        todo.add(initramfs_change.rebuild(native.initramfs, BLACKLIST, kept=True))
    else:
        todo.note(initramfs_change.missing(BLACKLIST))


def parse_permissions(params: dict[str, str]) -> Permissions | None:
    """DeviceFileMode, UID and GID of /proc/driver/nvidia/params, decimal; None for ModifyDeviceFiles 0."""
    numbers = {key: int(value) for key, value in params.items() if value.isdigit()}
    if numbers.get("ModifyDeviceFiles") == 0:
        return None
    return Permissions(
        numbers.get("DeviceFileMode", 0o666), numbers.get("DeviceFileUID", 0), numbers.get("DeviceFileGID", 0)
    )


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
