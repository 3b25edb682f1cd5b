# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the next boot starts a unit, as far as files tell it: a sight, for look.systemd.

systemd takes a unit's file from the first of its directories that has one (systemd.unit(5), "Unit File Load Path").
"""

from __future__ import annotations

from ..core.host import Host
from ..plan.systemd_asks import FOLDER, FOLDERS

BEFORE = ("/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/generator.early")
BETWEEN = (
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
)
TRANSIENT = "/run/systemd/transient"  # every login changes it: its one file counts, and not the directory
TARGETS = {"service": "multi-user.target", "socket": "sockets.target", "timer": "timers.target"}


def is_plainly_enabled(host: Host, name: str) -> bool:
    """Whether is-enabled says "enabled" of a unit without a doubt: a file of its own, and the usual link in /etc.

    False is no answer: systemd is to be asked.
    """
    target = TARGETS.get(name.rpartition(".")[2], "")
    if not target or host.link(f"{FOLDER}/{target}.wants/{name}") is None:
        return False
    for folder in (*BEFORE, TRANSIENT, FOLDER, *BETWEEN, *FOLDERS[1:]):
        path = f"{folder}/{name}"
        if host.link(path) is not None:  # a mask, or another name of the unit
            return False
        if host.exists(path):  # an empty file is a mask too
            return folder in FOLDERS and bool(host.read(path))
    return False
