# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit nvidia-driver."""

from __future__ import annotations

from ..core.errors import NotKnownYet
from ..core.host import Host
from ..core.plan import Past, Unit
from ..core.unknown import later
from ..look.driver import loaded
from ..look.driver_file import on_disk
from ..look.driver_library import library
from ..look.driver_packages import strays
from ..look.driver_upkeep import idle, modules, native, nodes, stale
from ..look.pci import gpus
from ..look.services import service
from ..plan import nvidia_driver as planner
from ..plan.nvidia_driver_target import INSTALL_DEBT
from ..plan.nvidia_driver_upkeep import PERSISTENCED, UVM
from ..plan.systemd_asks import RUNNING
from ..plan.unit_names import NVIDIA_DRIVER as NAME


def look(host: Host, settings: planner.Settings | None, past: Past) -> planner.Now:
    """What is loaded and on the disk; the rest as far as these are not what is asked for."""
    now = planner.Now(gpus=gpus(host), loaded=None, on_disk=None, library=None, native=native(host))
    try:
        now = now._replace(loaded=loaded(host))
        if settings and planner.has_nothing_to_do(now.gpus, now.loaded):
            return now
        now = now._replace(library=library(host))
        if settings is None:
            return now._replace(modules=modules(host, past), stale=stale(host))
        now = now._replace(on_disk=on_disk(host), modules=modules(host, past))
    except NotKnownYet as why:
        return _unknown(host, now, why.after)
    target, _notes = planner.target_of(settings, now.gpus, now.loaded)
    if now.library and planner.is_on_disk(target, now.on_disk, now.library):
        now = now._replace(astray=strays(host, target, now.library))
    fits = planner.fits(target, now)
    if not fits or target.version or INSTALL_DEBT in past.owed:
        from ..look.driver_use import shelf  # package tables: not for a host whose driver is as it should be

        now = now._replace(shelf=shelf(host, NAME, now))
    if fits and planner.is_loaded(now.loaded, now.on_disk):
        persistence = service(host, f"{PERSISTENCED}.service") if host.exists(RUNNING) else None
        left = () if UVM in now.modules else later(stale, host)
        return now._replace(nodes=later(nodes, host), persistenced=persistence, idle=idle(host, past), stale=left)
    from ..look.driver_use import only_signed, use

    users = use(host) if now.loaded else None
    return now._replace(use=users, only_signed=only_signed(host), stale=later(stale, host))


def _unknown(host: Host, now: planner.Now, after: str) -> planner.Now:
    """Behind an installation of check mode the loaded driver stays in use by those who use it."""
    if now.loaded is None:
        return now._replace(unknown=after)
    from ..look.driver_use import use

    return now._replace(unknown=after, use=use(host))


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
