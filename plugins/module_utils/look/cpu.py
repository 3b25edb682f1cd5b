# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPUs: which there are, which are isolated, their governors, and who else sets those."""

from __future__ import annotations

import re

from ..core.host import Host
from ..plan import cpulist
from ..plan.cpu import CPUS, RIVALS, Policy
from ..plan.systemd import RUNNING
from .systemd import has_unit, is_active


def cpus(host: Host, name: str) -> tuple[int, ...]:
    """The list in /sys/devices/system/cpu/<name>; empty when there is none."""
    return cpulist.parse(host.read(f"{CPUS}/{name}") or "")


def shown(host: Host, name: str) -> str | None:
    """The same file as text, None when this kernel has none."""
    text = host.read(f"{CPUS}/{name}")
    return None if text is None else text.strip()


def policies(host: Host, governor: str) -> tuple[Policy, ...]:
    """The online CPUs by what they share; what a driver offers is read only where the governor is another."""
    shared: dict[str, list[int]] = {}
    numbers = sorted(int(name[3:]) for name in host.names(CPUS) if re.fullmatch(r"cpu\d+", name))
    online = set(cpus(host, "online")) or set(numbers)
    for number in numbers:
        if number in online:
            place = host.link(f"{CPUS}/cpu{number}/cpufreq") or f"cpu{number}"
            shared.setdefault(place.rpartition("/")[2], []).append(number)
    found = []
    for members in shared.values():
        folder = f"{CPUS}/cpu{members[0]}/cpufreq"
        now = host.read(f"{folder}/scaling_governor")
        if now is not None:
            differs = now.strip() != governor
            offered = host.read(f"{folder}/scaling_available_governors") if differs else None
            found.append(Policy(tuple(members), now.strip(), tuple(offered.split()) if offered else None))
    return tuple(found)


def rivals(host: Host) -> tuple[str, ...]:
    """Active services that set governors; systemd is asked only of those that are installed."""
    if not host.exists(RUNNING):
        return ()
    installed = [name for name in RIVALS if has_unit(host, f"{name}.service")]
    return tuple(name for name in installed if is_active(host, f"{name}.service"))
