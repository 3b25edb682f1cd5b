# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses the loaded driver, what is on the disk beside it, and whether the kernel takes unsigned modules.

A host whose driver is as it should be needs none of this.
"""

from __future__ import annotations

from ..core.host import Host
from ..plan.nvidia_driver import Now
from ..plan.nvidia_driver_packages import Shelf
from ..plan.nvidia_driver_swap import ROOTS, SERVICES, Module, Use
from ..plan.nvidia_driver_target import MODULE_NAMES
from ..plan.nvidia_names import driver_globs
from .clients import device_holders
from .holds import holds, releasing
from .installed_units import has_unit
from .kernel import refcnt, release
from .nvidia_kernel import MODULES
from .os_release import distribution
from .packages import packages
from .services import is_active
from .systemd import systemd

EFI = "/sys/firmware/efi"
SECURE_BOOT = f"{EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def use(host: Host) -> Use:
    """Who uses the loaded driver: root's own look at processes, modules, holds and services."""
    running = systemd(host).running
    return Use(
        stack=stack(host),
        nodes=device_holders(host),
        claims=(*holds(host), *releasing(host)),
        services=tuple(
            name
            for name in sorted(SERVICES)
            if running and has_unit(host, f"{name}.service") and is_active(host, f"{name}.service")
        ),
    )


def stack(host: Host) -> tuple[Module, ...]:
    """The driver's module and all that stand on it, by /sys/module/*/holders."""
    found: dict[str, Module] = {}
    left = [name for name in ROOTS if host.exists(f"{MODULES}/{name}/refcnt")]
    while left:
        name = left.pop()
        if name in found:
            continue
        holders = host.names(f"{MODULES}/{name}/holders")
        found[name] = Module(name, refcnt(host, name) or 0, holders)
        left += holders
    return tuple(found[name] for name in sorted(found))


def shelf(host: Host, unit: str, now: Now) -> Shelf:
    """The packages, and where else a module file lies when the running kernel has none."""
    running = release(host)
    others = () if now.on_disk else tuple(name for name in host.names("/lib/modules") if name != running)
    return Shelf(
        release=running,
        on_disk=now.on_disk,
        library=now.library,
        packages=packages(host, driver_globs(distribution(host)), unit),
        loaded=now.loaded.version if now.loaded else "",
        elsewhere=tuple(name for name in others if _has_module(host, name)),
        headers=host.exists(f"/lib/modules/{running}/build"),
        signed=bool(only_signed(host)),
    )


def _has_module(host: Host, kernel: str) -> bool:
    return any(host.ask(("modinfo", "-k", kernel, name)).rc == 0 for name in MODULE_NAMES)


def only_signed(host: Host) -> str:
    """Why the kernel takes no module without a signature, as a clause; "" where it takes any."""
    if (host.read(f"{MODULES}/module/parameters/sig_enforce") or "").strip() == "Y":
        return "the kernel takes signed modules only (module.sig_enforce)"
    if not secure_boot(host) or "[none]" in (host.read("/sys/kernel/security/lockdown") or ""):
        return ""
    return "Secure Boot is on"


def secure_boot(host: Host) -> bool:
    """Whether the firmware says that Secure Boot is on; mokutil is asked where the kernel does not show it."""
    shown = host.read(SECURE_BOOT)  # four bytes of attributes, then the value
    if shown is not None:
        return len(shown) == 5 and shown[4] == "\x01"
    if not host.exists(EFI) or host.which("mokutil") is None:
        return False
    return host.ask(("mokutil", "--sb-state")).out.startswith("SecureBoot enabled")
