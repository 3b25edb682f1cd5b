# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit hugepages."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..look import memory, memory_shown
from ..look.kernel import release
from ..look.systemd import systemd, unit_file
from ..plan import hugepages as planner
from ..plan import hugepages_units as units
from ..plan.hugepages_boot import ARGUMENTS, RECORD, Reservation
from ..plan.pages import G1, SIZES, Pool
from ..plan.systemd_asks import FOLDER
from ..plan.unit_names import HUGEPAGES as NAME


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """The pools, and as much of the rest as the settings are about; the boot loader only where it is needed."""
    seen = memory.memory(host)
    goals = {size: settings.targets(size, seen.nodes) for size in settings.counts} if settings else {}
    pools = {
        size: memory.pool(host, size, goals.get(size, {})) if settings is None or size in goals else Pool()
        for size in SIZES
    }
    mount = _mount(host, any(goals[G1].values()) if G1 in goals else None)
    system = systemd(host)
    asks = system.running and not mount.shown and host.exists(f"{FOLDER}/{units.MOUNT}")
    return planner.Now(
        memory=seen,
        pools=pools,
        transparent=memory.transparent(host),
        command_line=host.read("/proc/cmdline") or "",
        release=release(host),
        reservation=_reservation(host, planner.falls_short(settings, seen, pools[G1])),
        systemd=system,
        mount=mount,
        mount_unit=unit_file(host, units.MOUNT, units.WANTED_BY, asks),
        service=unit_file(host, units.SERVICE, units.WANTED_BY),
    )


def _mount(host: Host, wanted: bool | None) -> units.Mount:
    """The mount of 1 GiB pages (`wanted` None: it is left as it is); all others only where it is to come or to go."""
    line = host.sight(memory_shown.mounted, units.MOUNTS, units.POINT)
    seen = units.parse_mount(line)
    if wanted is None or bool(line) == wanted:
        return seen
    return seen._replace(text=host.read(units.MOUNTS) or "")


def _reservation(host: Host, short: bool) -> Reservation:
    seen = Reservation(host.file(RECORD), host.file(ARGUMENTS))
    if not (seen.made or short):
        return seen
    from ..look.boot import boot  # a host without a reservation does not look at boot loaders

    return seen._replace(boot=boot(host, NAME))


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
