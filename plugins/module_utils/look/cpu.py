# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPUs: which there are, which are isolated, their governors, and who else sets those."""

from __future__ import annotations

from ..core.host import Host
from ..plan import cpulist
from ..plan.cpu import CPUS, RIVALS, Policy
from ..plan.systemd_asks import RUNNING
from . import cpu_governors
from .installed_units import has_unit


def cpus(host: Host, name: str) -> tuple[int, ...]:
    """The list in /sys/devices/system/cpu/<name>; empty when there is none."""
    return cpulist.parse(host.read(f"{CPUS}/{name}") or "")


def shown(host: Host, name: str) -> str | None:
    """The same file as text, None when this kernel has none."""
    text = host.read(f"{CPUS}/{name}")
    return None if text is None else text.strip()


def policies(host: Host, governor: str) -> tuple[Policy, ...]:
    """The online CPUs by what they share; what a driver offers is known only where the governor is another."""
    found = host.sight(cpu_governors.governors, list(cpus(host, "online")), governor)
    return tuple(Policy(tuple(cpus), now, None if offered is None else tuple(offered)) for cpus, now, offered in found)


def rivals(host: Host) -> tuple[str, ...]:
    """Active services that set governors; systemd is asked only of those that are installed."""
    if not host.exists(RUNNING):
        return ()
    installed = [name for name in RIVALS if has_unit(host, f"{name}.service")]
    if not installed:
        return ()
    from .services import is_active

    return tuple(name for name in installed if is_active(host, f"{name}.service"))
