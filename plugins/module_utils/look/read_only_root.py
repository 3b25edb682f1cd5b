# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the root file system is mounted read-only: a sight, since every other mount comes and goes."""

from __future__ import annotations

from ..core.host import Host


def root_is_read_only(host: Host) -> bool:
    """By /proc/self/mounts: `device / type options ...`; the last mount on / counts."""
    mounts = host.read("/proc/self/mounts") or ""
    options = [line.split()[3] for line in mounts.splitlines() if line.split()[1:2] == ["/"]]
    return bool(options) and "ro" in options[-1].split(",")
