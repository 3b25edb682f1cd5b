# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From which files the answer of is-enabled follows, where the usual link does not tell it: a sight, for look.systemd.

systemd looks in all of its directories for links that enable a unit.
"""

from __future__ import annotations

from ..core.host import Host
from ..plan.systemd_asks import FOLDERS
from .unit_enabled import BEFORE, BETWEEN, TRANSIENT

LAST = "/run/systemd/generator.late"
LINKED = (".wants", ".requires", ".upholds")
PROGRAMS = ("/usr/bin/systemctl", "/usr/lib/systemd/systemd")


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
