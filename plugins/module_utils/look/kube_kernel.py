# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker needs of the kernel, as it shows it, and who else has a say at a boot."""

from __future__ import annotations

from ..core.host import Host
from ..core.unknown import later
from ..plan.kube_kernel import ALIAS, BELOW, IPV6, KEYS, MODULES, MODULES_FILE, SYSCTL_FILE, Kernel
from .kernel import release
from .modprobe import modprobe_rivals
from .sysctl import live, rivals


def kernel(host: Host) -> Kernel:
    """Our files, the modules and the parameters, and who has another say of them at a boot."""
    shown = release(host)
    modules = {name: _module(host, name, shown) for name in MODULES}
    return Kernel(
        modules_file=host.file(MODULES_FILE),
        sysctl_file=host.file(SYSCTL_FILE),
        modules=modules,
        live={key.path: later(live, host, key.path) for key in KEYS},
        rivals=rivals(host, frozenset(key.path for key in (*KEYS, ALIAS)), SYSCTL_FILE),
        blocked=_blocked(host),
        ipv6=host.exists(IPV6),
        release=shown,
        extra=_extra(host, shown) if "missing" in modules.values() else "",
    )


def _module(host: Host, name: str, release_: str) -> str:
    """Of a module: "there", "loadable", "missing", or "gone" with all modules of this release (see Kernel)."""
    if host.exists(f"/sys/module/{name}"):
        return "there"
    from .kube_modules import module

    return module(host, name, release_)


def _extra(host: Host, release_: str) -> str:
    from .kube_modules import extra

    return extra(host, release_)


def _blocked(host: Host) -> tuple[str, ...]:
    """Lines of modprobe.d that keep one of the modules, or what it stands on, from loading at a boot."""
    found = modprobe_rivals(host, frozenset((*MODULES, *BELOW)))
    return tuple(f"{line.path} says {line.command} {line.module}" for line in found if line.command != "options")
