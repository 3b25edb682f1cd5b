# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with NVIDIA's driver on this host: nouveau, loaded modules, device nodes, nvidia-persistenced."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past
from ..plan.nvidia_driver_nodes import Nodes, needed
from ..plan.nvidia_driver_upkeep import BLACKLIST, NATIVE, PERSISTENCED, Native
from ..plan.nvidia_nodes import UVM_NODES
from . import nvidia_kernel
from .initramfs import initramfs
from .nvidia_kernel import MODULES
from .nvidia_proc import taken


def native(host: Host) -> Native:
    """What keeps nouveau out, and which of the kernel's own drivers is loaded."""
    loaded = tuple(name for name in NATIVE if host.exists(f"{MODULES}/{name}/refcnt"))
    return Native(host.file(BLACKLIST), loaded, initramfs(host))


def modules(host: Host, past: Past) -> frozenset[str]:
    """The loaded modules of NVIDIA's, as it names them, and of those that the past is about."""
    also = sorted({name.rpartition(" ")[2] for name in (*past.owed, *past.tried)})
    return frozenset(host.sight(nvidia_kernel.modules, also))


def nodes(host: Host) -> Nodes:
    """The device nodes that the loaded driver needs and that are missing."""
    wanted = needed(
        host.sight(nvidia_kernel.majors),
        tuple(sorted(gpu.minor for gpu in taken(host) if gpu.minor is not None)),
        "nvidia_modeset" in host.sight(nvidia_kernel.modules, []),
    )
    missing = tuple(node for node in wanted if not host.exists(node.path))
    if not missing:
        return Nodes()
    from ..plan.nvidia_driver_repair import parse_permissions
    from .kernel import NVIDIA, parse_nvidia

    permissions = parse_permissions(parse_nvidia(host.read(NVIDIA) or ""))
    return Nodes(missing, host.which("nvidia-modprobe") is not None, permissions)


def stale(host: Host) -> tuple[str, ...]:
    """The device nodes of unified memory that are there: while its module is not, or goes."""
    return tuple(path for path, _minor in UVM_NODES if host.exists(path))


def idle(host: Host, past: Past) -> tuple[str, ...]:
    """The services that a pass stopped and that do not run; nvidia-persistenced is looked at by itself."""
    if not past.owed:
        return ()
    from ..plan.debts import owed
    from .services import is_active

    stopped = (name for name in owed(past.owed, "start") if name != PERSISTENCED)
    return tuple(name for name in stopped if not is_active(host, f"{name}.service"))
