# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MPS daemons beside ours, among all processes: a narrow look, for which little is imported."""

from __future__ import annotations

from ..core.errors import SEEN_AS_ROOT, NotKnownYet, Unreadable
from ..core.host import Host

DEFAULT_PIPE = "/tmp/nvidia-mps"  # noqa: S108 - the daemon's own default, which is only told
KEPT = 15  # characters of a program's name that the kernel keeps


def rivals(host: Host, control: str, ours: str) -> list[tuple[int, str, str]]:
    """Of each process of the program `control` that the service `ours` does not run: its id, its service ("" for
    none), and the directory in which it listens.
    """
    found = []
    for pid in host.names("/proc"):
        if not pid.isdecimal() or (host.read(f"/proc/{pid}/comm") or "").strip() != control[:KEPT]:
            continue
        program = (host.read(f"/proc/{pid}/cmdline") or "").partition("\0")[0].rpartition("/")[2]
        unit = _unit(host.read(f"/proc/{pid}/cgroup") or "")
        if program == control and unit != ours:
            found.append((int(pid), unit, _pipe(host, pid)))
    return found


def _unit(cgroup: str) -> str:
    """The service of a process, from "0::/system.slice/nvidia-mps.service"; "" where none runs it."""
    names = [name for line in cgroup.splitlines() for name in line.split("/") if name.endswith(".service")]
    return names[-1] if names else ""


def _pipe(host: Host, pid: str) -> str:
    """The directory in which a daemon listens, from its environment, which root alone may read."""
    try:
        text = host.read(f"/proc/{pid}/environ") or ""
    except (Unreadable, NotKnownYet):
        return f"unknown, {SEEN_AS_ROOT}"
    pairs = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    return pairs.get("CUDA_MPS_PIPE_DIRECTORY", DEFAULT_PIPE)
