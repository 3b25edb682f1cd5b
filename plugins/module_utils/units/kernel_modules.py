# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit kernel-modules."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Unit
from ..look.initramfs import initramfs
from ..look.kernel import builtin_modules, modprobe_rivals, module
from ..plan import kernel_modules as planner


def look(host: Host, settings: planner.Settings | None) -> planner.Now:
    """Our files, and every module that the settings name."""
    names = planner.named(settings) if settings else ()
    builtin = builtin_modules(host) if names else frozenset()
    return planner.Now(
        load_file=host.file(planner.LOAD),
        probe_file=host.file(planner.PROBE),
        modules={
            name: module(host, name, planner.parameters_of(settings, name) if settings else (), builtin)
            for name in names
        },
        initramfs=initramfs(host),
        rivals=modprobe_rivals(host, frozenset(names)),
    )


UNIT = Unit(planner.UNIT, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
