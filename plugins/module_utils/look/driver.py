# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's driver as the kernel has loaded it (its library: driver_library)."""

from __future__ import annotations

from ..core.host import Host
from ..plan.nvidia_driver_version import VERSION_FILE, Loaded, parse_nvrm


def loaded(host: Host) -> Loaded | None:
    """The driver that the kernel has loaded, None when there is none.

    /sys/module/nvidia is no witness: Debian's own packages load the module as nvidia_current.
    """
    text = host.read(VERSION_FILE)
    return None if text is None else parse_nvrm(text)
