# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd knows of our unit files, read from files where a file tells it."""

from __future__ import annotations

from ..core.host import Host
from ..plan.systemd import FOLDER, HOLDS, RUNNING, Systemd, UnitFile, asks_reload


def systemd(host: Host) -> Systemd:
    """Whether systemd is PID 1 here, and whether holds exist."""
    names = host.names(HOLDS)
    return Systemd(host.exists(RUNNING), any(name.startswith("bcd-") and name.endswith(".json") for name in names))


def unit_file(host: Host, name: str, wanted_by: str, ask: bool = False) -> UnitFile:
    """One unit file of ours; `ask` also asks the manager whether it is behind, which costs a program."""
    bare = UnitFile(name, wanted_by)
    return bare._replace(
        file=host.file(f"{FOLDER}/{name}"),
        enabled=host.file(bare.link) is not None,
        behind=ask and host.ask(asks_reload(name)).out.strip() == "yes",
    )
