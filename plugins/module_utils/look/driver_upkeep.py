# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with NVIDIA's driver on this host: nouveau, loaded modules, device nodes, nvidia-persistenced."""

from __future__ import annotations

from ..core.host import Host
from ..plan.nvidia_driver_upkeep import (
    BLACKLIST,
    NATIVE,
    PERSISTENCED,
    UVM_NODES,
    Native,
    Nodes,
    Service,
    needed,
    parse_majors,
    parse_minor,
    parse_permissions,
)
from .initramfs import initramfs
from .kernel import NVIDIA, parse_nvidia

MODULES = "/sys/module"
GPUS = "/proc/driver/nvidia/gpus"
UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)


def native(host: Host) -> Native:
    """What keeps nouveau out, and which of the kernel's own drivers is loaded."""
    loaded = tuple(name for name in NATIVE if host.exists(f"{MODULES}/{name}/refcnt"))
    return Native(host.file(BLACKLIST), loaded, initramfs(host))


def modules(host: Host) -> frozenset[str]:
    """The loaded modules, Debian's own packages' under the names that NVIDIA gives them."""
    return frozenset(name.replace("nvidia_current", "nvidia") for name in host.names(MODULES))


def nodes(host: Host) -> Nodes:
    """The device nodes that the loaded driver needs and that are missing."""
    minors = (parse_minor(host.read(f"{GPUS}/{address}/information") or "") for address in host.names(GPUS))
    wanted = needed(
        parse_majors(host.read("/proc/devices") or ""),
        tuple(sorted(minor for minor in minors if minor is not None)),
        "nvidia_modeset" in modules(host),
    )
    missing = tuple(node for node in wanted if not host.exists(node.path))
    if not missing:
        return Nodes()
    permissions = parse_permissions(parse_nvidia(host.read(NVIDIA) or ""))
    return Nodes(missing, host.which("nvidia-modprobe") is not None, permissions)


def stale(host: Host) -> tuple[str, ...]:
    """The device nodes of unified memory that are there: while its module is not, or goes."""
    return tuple(path for path, _minor in UVM_NODES if host.exists(path))


def has_unit(host: Host, name: str) -> bool:
    """Whether systemd has a unit file of that name."""
    return any(host.exists(f"{folder}/{name}") for folder in UNIT_FOLDERS)


def is_active(host: Host, name: str) -> bool:
    """Whether a service runs."""
    return host.ask(("systemctl", "is-active", name)).rc == 0


def idle(host: Host, owed: frozenset[str]) -> tuple[str, ...]:
    """The services that a pass stopped ("start <name>" is owed) and that do not run; nvidia-persistenced is its own."""
    names = sorted(debt[len("start ") :] for debt in owed if debt.startswith("start "))
    return tuple(name for name in names if name != PERSISTENCED and not is_active(host, f"{name}.service"))


def persistenced(host: Host) -> Service | None:
    """nvidia-persistenced as systemd has it, None where it is not installed."""
    name = f"{PERSISTENCED}.service"
    if not has_unit(host, name):
        return None
    return Service(host.ask(("systemctl", "is-enabled", name)).out.strip(), is_active(host, name))
