# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initramfs as a look sees it; what becomes of it is in initramfs_change."""

from __future__ import annotations

from typing import NamedTuple

DEBT = "initramfs"
TOOLS = ("rpm-ostree", "update-initramfs", "dracut")  # an ostree system keeps its own; else Debian's tool, else dracut


class Initramfs(NamedTuple):
    """How this host makes its initramfs: the tool ("" when there is none) and the running kernel's release.

    `root`: whether the account that looks is root, who alone may read an image on many hosts.
    """

    tool: str
    release: str
    root: bool = True

    @property
    def is_known(self) -> bool:
        """Whether somebody here can rebuild it."""
        return self.tool in TOOLS
