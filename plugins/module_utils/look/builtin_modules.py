# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is built into the running kernel: a sight, since the kernel's list of it is long."""

from __future__ import annotations

from ..core.host import Host
from .kernel import release


def is_builtin(host: Host, name: str) -> bool:
    """Whether a module, by its name with underscores, is in the list."""
    return name in parse_builtin(host.read(f"/lib/modules/{release(host)}/modules.builtin") or "")


def parse_builtin(text: str) -> frozenset[str]:
    """modules.builtin: one path a line, "kernel/drivers/net/tun.ko"."""
    names = (line.strip().rpartition("/")[2] for line in text.splitlines())
    return frozenset(name.partition(".ko")[0].replace("-", "_") for name in names if name)
