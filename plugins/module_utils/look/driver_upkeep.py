# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with NVIDIA's driver on this host: nouveau, loaded modules, device nodes, nvidia-persistenced."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past
from ..plan.debts import owed
from ..plan.nvidia_driver_upkeep import (
    BLACKLIST,
    NATIVE,
    PERSISTENCED,
    Native,
    Nodes,
    needed,
    parse_permissions,
)
from ..plan.nvidia_nodes import UVM_NODES, parse_majors
from .initramfs import initramfs
from .kernel import NVIDIA, parse_nvidia
from .nvidia_proc import taken
from .systemd import is_active

MODULES = "/sys/module"


def native(host: Host) -> Native:
    """What keeps nouveau out, and which of the kernel's own drivers is loaded."""
    loaded = tuple(name for name in NATIVE if host.exists(f"{MODULES}/{name}/refcnt"))
    return Native(host.file(BLACKLIST), loaded, initramfs(host))


def modules(host: Host) -> frozenset[str]:
    """The loaded modules, Debian's own packages' under the names that NVIDIA gives them."""
    return frozenset(name.replace("nvidia_current", "nvidia") for name in host.names(MODULES))


def nodes(host: Host) -> Nodes:
    """The device nodes that the loaded driver needs and that are missing."""
    wanted = needed(
        parse_majors(host.read("/proc/devices") or ""),
        tuple(sorted(gpu.minor for gpu in taken(host) if gpu.minor is not None)),
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


def idle(host: Host, past: Past) -> tuple[str, ...]:
    """The services that a pass stopped and that do not run; nvidia-persistenced is looked at by itself."""
    stopped = (name for name in owed(past.owed, "start") if name != PERSISTENCED)
    return tuple(name for name in stopped if not is_active(host, f"{name}.service"))
