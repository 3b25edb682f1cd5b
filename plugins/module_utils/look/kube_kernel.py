# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker needs of the kernel, as it shows it, and who else has a say at a boot."""

from __future__ import annotations

from ..core.host import Host
from ..core.unknown import later
from ..plan.kube_kernel import ALIAS, BELOW, IPV6, KEYS, MODULES, MODULES_FILE, SYSCTL_FILE, Kernel
from .modprobe import modprobe_rivals
from .sysctl import live, rivals


def kernel(host: Host) -> Kernel:
    """Our files, the modules and the parameters, and who has another say of them at a boot."""
    now = Kernel(
        modules_file=host.file(MODULES_FILE),
        sysctl_file=host.file(SYSCTL_FILE),
        modules={name: "there" for name in MODULES if host.exists(f"/sys/module/{name}")},
        live={key.path: later(live, host, key.path) for key in KEYS},
        rivals=rivals(host, frozenset(key.path for key in (*KEYS, ALIAS)), SYSCTL_FILE),
        blocked=_blocked(host),
        ipv6=host.exists(IPV6),
    )
    if len(now.modules) == len(MODULES) and all(value is not None for value in now.live.values()):
        return now
    from .kube_modules import with_release

    return with_release(host, now)


def _blocked(host: Host) -> tuple[str, ...]:
    """Lines of modprobe.d that keep one of the modules, or what it stands on, from loading at a boot."""
    found = modprobe_rivals(host, frozenset((*MODULES, *BELOW)))
    return tuple(f"{line.path} says {line.command} {line.module}" for line in found if line.command != "options")
