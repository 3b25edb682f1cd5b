# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit kernel-modules."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..core.unknown import later
from ..look.initramfs import initramfs
from ..look.kernel_modules import module, recorded_modules, used
from ..look.modprobe import modprobe_rivals
from ..plan import kernel_modules as planner
from ..plan.modprobe_lines import PROBE
from ..plan.module_settings import FIELDS, Settings, check, named, parameters_of
from ..plan.unit_names import KERNEL_MODULES as NAME


def look(host: Host, settings: Settings | None, past: Past) -> planner.Now:
    """Our files, and every module that the settings or a record name; who uses them where one may have to go."""
    mine = named(settings) if settings else ()
    names = sorted({*mine, *recorded_modules(host)})
    now = planner.Now(
        load_file=host.file(planner.LOAD),
        probe_file=host.file(PROBE),
        modules={name: module(host, name, parameters_of(settings, name) if settings else ()) for name in names},
        initramfs=initramfs(host),
        rivals=modprobe_rivals(host, frozenset(mine)),
    )
    if settings is None or later(planner.needs_no_unloading, settings, now, past) is True:
        return now
    return now._replace(modules={name: used(host, seen) for name, seen in now.modules.items()})


UNIT = Unit(NAME, FIELDS, check, look, planner.plan, planner.absent)
