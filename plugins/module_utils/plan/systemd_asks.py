# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's own words: where it keeps things, and the questions that it is asked of a unit.

`asks_active`, `asks_enabled` and `asks_reload` name one fact each: a step that changes the fact declares its answer,
and a look takes that first (see look.systemd). What no step has declared is asked of all services at once, by
`asks_shown`; but UnitFileState is not: the manager has kept it since it loaded the unit, and is-enabled reads the disk.
"""

from __future__ import annotations

RUNNING = "/run/systemd/system"  # is there exactly when systemd is PID 1
SYSTEM_STATE = ("systemctl", "is-system-running")
FOLDER = "/etc/systemd/system"
# Where units of packages and of administrators lie, in the order in which systemd takes them.
PACKAGED = "/usr/lib/systemd/system"
FOLDERS = (FOLDER, "/usr/local/lib/systemd/system", PACKAGED, "/lib/systemd/system")
RUNS = ("active", "reloading", "refreshing")  # the states, as systemd prints them, of what is up
# The units that a pass looks at: one question has those of them that are installed.
LOOKED_AT = (
    "bcd-mig.service",
    "bcd-mps.service",
    "containerd.service",
    "crio.service",
    "docker.service",
    "kubelet.service",
    "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
    "power-profiles-daemon.service",
    "tuned.service",
)


def asks_active(name: str) -> tuple[str, ...]:
    """The question for a unit's state, which it prints; it exits 0 where that is active. `name` has its suffix."""
    return ("systemctl", "is-active", name)


def asks_enabled(name: str) -> tuple[str, ...]:
    """The question whether the next boot starts a unit, which it prints."""
    return ("systemctl", "is-enabled", name)


def asks_reload(name: str) -> tuple[str, ...]:
    """The question whether the manager has loaded another version of a unit than is on disk; it prints yes or no."""
    return ("systemctl", "show", "--property=NeedDaemonReload", "--value", name)


def asks_shown(names: tuple[str, ...]) -> tuple[str, ...]:
    """The question for both of several units: lines `Property=value`, and an empty line between two units."""
    return ("systemctl", "show", "--property=ActiveState,NeedDaemonReload", "--", *names)
