# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files tell modinfo where the module of a name lies: a sight, for look.driver."""

from __future__ import annotations

from ..core.host import Host

# depmod writes all of them anew; the module's own file is looked at beside them.
INDEXES = ("modules.dep.bin", "modules.alias.bin", "modules.symbols.bin", "modules.builtin.bin")
FOLDERS = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
ENDINGS = (".conf", ".alias")  # of what kmod reads there; the second up to kmod 29


def deciding(host: Host, release: str) -> list[str]:
    """kmod itself, its indexes for a kernel, and modprobe.d, whose aliases come first; [] where there is no index."""
    indexes = [f"/lib/modules/{release}/{name}" for name in INDEXES]
    if not host.exists(indexes[0]):
        return []
    found = [host.which("modinfo") or "modinfo", *indexes]
    for folder in FOLDERS:
        found += [folder, *(f"{folder}/{name}" for name in host.names(folder) if name.endswith(ENDINGS))]
    return found
