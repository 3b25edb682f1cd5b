# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running kernel: its release, whether a module is in use, and what NVIDIA's shows of its parameters."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host

NVIDIA = "/proc/driver/nvidia/params"


def release(host: Host) -> str:
    """The running kernel's release, "6.12.48+deb13-amd64"."""
    return (host.read("/proc/sys/kernel/osrelease") or "").strip()


def refcnt(host: Host, name: str) -> int | None:
    """References to a loaded module, by its name with underscores; None where it is not loaded, or built in."""
    path = f"/sys/module/{name}/refcnt"
    text = host.read(path)
    if text is None:
        return None
    digits = text.strip() or "0"  # one that is on its way out has none left to show
    if not digits.lstrip("-").isdecimal() or len(digits) > 11:
        raise StepFailed(f"{path} reads {text[:40]!r}, which is no number of references: see the kernel's log")
    return int(digits)


def parse_nvidia(text: str) -> dict[str, str]:
    """/proc/driver/nvidia/params: `EnableMSI: 1` a line, texts in quotes; names are without their NVreg_."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip().strip('"') for key, colon, value in pairs if colon}
