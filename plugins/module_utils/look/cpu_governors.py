# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frequency governors of the CPUs: a sight, since a machine has hundreds of CPUs."""

from __future__ import annotations

from ..core.host import Host

CPUS = "/sys/devices/system/cpu"


def governors(host: Host, online: list[int], wanted: str) -> list[tuple[list[int], str, list[str] | None]]:
    """The online CPUs (none given: all) that share one frequency, with their governor.

    Last what their driver offers, which is read only where the governor is not the wanted one; None: it does not say.
    """
    shared: dict[str, list[int]] = {}
    names = [name[3:] for name in host.names(CPUS) if name.startswith("cpu")]
    numbers = sorted(int(name) for name in names if name.isdecimal())
    for number in numbers:
        if not online or number in online:
            place = host.link(f"{CPUS}/cpu{number}/cpufreq") or f"cpu{number}"
            shared.setdefault(place.rpartition("/")[2], []).append(number)
    found: list[tuple[list[int], str, list[str] | None]] = []
    for members in shared.values():
        folder = f"{CPUS}/cpu{members[0]}/cpufreq"
        now = host.read(f"{folder}/scaling_governor")
        if now is not None:
            differs = now.strip() != wanted
            offered = host.read(f"{folder}/scaling_available_governors") if differs else None
            found.append((members, now.strip(), offered.split() if offered else None))
    return found
