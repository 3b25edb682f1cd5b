# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd as a look sees it: the manager, a service, a unit file of ours."""

from __future__ import annotations

from ..core.step import File
from .files import is_as
from .systemd_asks import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

RELOAD = "daemon-reload"  # the debt


class Systemd(NamedTuple):
    """Whether systemd manages this host, and whether containers hold GPUs through our CDI files."""

    running: bool
    holds: bool = False


class UnitFile(NamedTuple):
    """A unit file of ours. `behind`: the manager says that it has loaded another version (NeedDaemonReload)."""

    name: str  # "dev-hugepages1G.mount"
    wanted_by: str  # "sysinit.target"
    file: File | None = None
    enabled: bool = False
    behind: bool = False

    @property
    def path(self) -> str:
        """Where the file lies."""
        return f"{FOLDER}/{self.name}"

    @property
    def link(self) -> str:
        """The link that enables it."""
        return f"{FOLDER}/{self.wanted_by}.wants/{self.name}"

    def is_kept(self, text: str) -> bool:
        """Whether nothing is to be done for it to hold the text, and to be what the manager has and starts."""
        return is_as(self.file, text) and self.enabled and not self.behind
