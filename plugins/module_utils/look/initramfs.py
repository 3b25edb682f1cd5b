# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tool makes this host's initramfs."""

from __future__ import annotations

from ..core.host import Host
from ..plan.initramfs import Initramfs
from .kernel import release


def initramfs(host: Host) -> Initramfs:
    """An ostree system keeps its own; else Debian's tool, else dracut."""
    tools = ("rpm-ostree",) if host.exists("/run/ostree-booted") else ("update-initramfs", "dracut")
    tool = next((tool for tool in tools if host.which(tool)), "")
    return Initramfs(tool, release(host), root=host.uid() == 0)
