# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module file of NVIDIA's driver for the running kernel."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.nvidia_driver_target import MODULE_NAMES, OnDisk, parse_modinfo
from . import module_index
from .kernel import release

NOT_KNOWN = "not found"  # what modinfo says of a name that no index has


def on_disk(host: Host) -> OnDisk | None:
    """The module file that modprobe would load into the *running* kernel; None when it has none.

    Raises StepFailed where modinfo is not installed.
    """
    kernel = release(host)
    decide = tuple(host.sight(module_index.deciding, kernel))
    for name in MODULE_NAMES:
        argv = ("modinfo", "-k", kernel, name)
        answer = host.follows(argv, decide) if decide else host.ask(argv)
        if answer.rc and NOT_KNOWN not in answer.err:  # a file that is gone, or a fault: what follows from no index
            answer = host.ask(argv)
        if answer.rc == 127:
            raise StepFailed("modinfo is not installed: install kmod and run again")
        found = parse_modinfo(answer.out) if answer.rc == 0 else None
        if found:
            host.stamp(found.path)  # the answer follows from this file too, which only the answer names
            return found
    return None
