# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit kernel-modules."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..look.initramfs import initramfs
from ..look.kernel_modules import builtin_modules, module, recorded_modules
from ..look.modprobe import modprobe_rivals
from ..plan import kernel_modules as planner
from ..plan.modprobe import PROBE
from ..plan.module_settings import FIELDS, Settings, check, named, parameters_of
from ..plan.unit_names import KERNEL_MODULES as NAME


def look(host: Host, settings: Settings | None, _past: Past) -> planner.Now:
    """Our files, and every module that the settings or a record of ours name."""
    mine = named(settings) if settings else ()
    names = tuple(sorted({*mine, *recorded_modules(host)}))
    builtin = builtin_modules(host) if names else frozenset()
    return planner.Now(
        load_file=host.file(planner.LOAD),
        probe_file=host.file(PROBE),
        modules={
            name: module(host, name, parameters_of(settings, name) if settings else (), builtin) for name in names
        },
        initramfs=initramfs(host),
        rivals=modprobe_rivals(host, frozenset(mine)),
    )


UNIT = Unit(NAME, FIELDS, check, look, planner.plan, planner.absent)
