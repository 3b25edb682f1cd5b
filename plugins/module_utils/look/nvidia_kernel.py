# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel has of NVIDIA's: modules and numbers of devices; sights, since others' come and go beside them."""

from __future__ import annotations

from ..core.host import Host
from ..plan.nvidia_nodes import parse_majors

MODULES = "/sys/module"


def modules(host: Host, also: list[str]) -> list[str]:
    """The loaded ones of NVIDIA's modules and of those in `also`, sorted.

    Debian's own packages' are under the names that NVIDIA gives them.
    """
    names = {name.replace("nvidia_current", "nvidia") for name in host.names(MODULES)}
    return sorted(name for name in names if name.startswith("nvidia") or name in also)


def majors(host: Host) -> dict[str, int]:
    """The majors of NVIDIA's character devices, by name."""
    shown = parse_majors(host.read("/proc/devices") or "")
    return {name: number for name, number in sorted(shown.items()) if name.startswith("nvidia")}
