# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the next boot starts a unit, as far as files tell it: sights, for look.systemd.

systemd takes a unit's file from the first of its directories that has one, and looks in all of them for the links that
enable it (systemd.unit(5), "Unit File Load Path").
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
LAST = "/run/systemd/generator.late"
TRANSIENT = "/run/systemd/transient"  # every login changes it: its one file counts, and not the directory
TARGETS = {"service": "multi-user.target", "socket": "sockets.target", "timer": "timers.target"}
LINKED = (".wants", ".requires", ".upholds")
PROGRAMS = ("/usr/bin/systemctl", "/usr/lib/systemd/systemd")


def is_plainly_enabled(host: Host, name: str) -> bool:
    """Whether is-enabled says "enabled" of a unit without a doubt: a file of its own, and the usual link in /etc.

    False is no answer: systemd is to be asked.
    """
    target = TARGETS.get(name.rpartition(".")[2], "")
    if not target or host.link(f"{FOLDER}/{target}.wants/{name}") is None:
        return False
    if any(host.exists(f"{folder}/{name}") for folder in (*BEFORE, TRANSIENT)):
        return False
    places = [folder for folder in (FOLDER, *BETWEEN, *FOLDERS[1:]) if host.exists(f"{folder}/{name}")]
    if not places or places[0] in BETWEEN:
        return False
    path = f"{places[0]}/{name}"  # a link is a mask, or another name of the unit; an empty file is a mask too
    return host.link(path) is None and bool(host.read(path))


def deciding(host: Host, name: str) -> list[str]:
    """The paths whose stamps decide what is-enabled prints: directories of units and of links, files of this unit."""
    vendor = FOLDERS if host.link("/lib") is None else FOLDERS[:-1]
    found = [*PROGRAMS, f"{TRANSIENT}/{name}"]
    drop_ins = _drop_ins(name)
    for folder in dict.fromkeys((*BEFORE, *vendor, *BETWEEN, LAST)):
        found += [folder, f"{folder}/{name}"]
        for below in host.names(folder):
            path = f"{folder}/{below}"
            if below.endswith(LINKED):
                found.append(path)
            elif below in drop_ins:
                found += [path, *(f"{path}/{file}" for file in host.names(path))]
    return found


def _drop_ins(name: str) -> frozenset[str]:
    """The directories of drop-ins that a unit may have: its own, of its type, and of what its name begins with."""
    stem, _dot, kind = name.rpartition(".")
    begins = [f"{stem[: at + 1]}.{kind}.d" for at, letter in enumerate(stem) if letter == "-"]
    return frozenset((f"{name}.d", f"{kind}.d", *begins))
