# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's unit files of ours: written, enabled, and loaded with as few daemon-reloads as can be.

A daemon-reload can cut running containers off their GPUs and drop cgroup controllers set by hand, so it is planned
only when a unit file changed or the manager itself says that it is behind, once for all files of a plan, and it is of
the class `service` while holds exist. `systemctl enable` reloads too unless it is told not to.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect, File, Step, remove, run
from .files import drop, keep

RUNNING = "/run/systemd/system"  # is there exactly when systemd is PID 1
FOLDER = "/etc/systemd/system"
HOLDS = "/etc/cdi"  # holds are its bcd-*.json
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


def asks_reload(name: str) -> tuple[str, ...]:
    """The question whether the manager has loaded another version of a unit than is on disk; it prints yes or no."""
    return ("systemctl", "show", "--property=NeedDaemonReload", "--value", name)


def keep_unit(todo: Todo, seen: UnitFile, text: str) -> bool:
    """Plan the file and its enabling, as far as they are missing; whether a daemon-reload has to follow."""
    wrote = keep(todo, seen.path, text, seen.file, owes=(RELOAD,))
    if not seen.enabled:
        todo.add(enable(seen))
    return wrote


def drop_unit(todo: Todo, seen: UnitFile) -> bool:
    """Plan the removal of the link and the file, as far as they are there; whether a daemon-reload has to follow."""
    if seen.enabled:
        todo.add(remove(seen.link, f"disable {seen.name}", owes=(RELOAD,)))
    return drop(todo, seen.path, seen.file, owes=(RELOAD,)) or seen.enabled


def enable(seen: UnitFile) -> Step:
    """Enable a unit from the next boot on, without the daemon-reload that systemctl would add."""
    return run(
        ("systemctl", "enable", "--no-reload", seen.name), f"enable {seen.name}", effects=(Effect("file", seen.link),)
    )


def reload(
    todo: Todo, systemd: Systemd, units: tuple[UnitFile, ...], due: bool, past: Past, *, owes: tuple[str, ...] = ()
) -> None:
    """Plan the one daemon-reload for `units`, when a file changed (`due`), a killed pass owes it, or one is behind.

    `owes`: what has to follow it, a restart, where only the manager knows that it is behind.
    """
    if due or RELOAD in past.owed or any(unit.behind for unit in units):
        todo.add(
            run(
                ("systemctl", "daemon-reload"),
                "let systemd load its unit files again (daemon-reload)",
                disruption="service" if systemd.holds else "none",
                pays=(RELOAD,),
                owes=owes,
                effects=tuple(Effect("answers", " ".join(asks_reload(unit.name)), "no\n") for unit in units),
            )
        )


def start(name: str, *, effects: tuple[Effect, ...] = ()) -> Step:
    """Start a unit that does not run; `effects` say what a look then sees."""
    return run(("systemctl", "start", name), f"start {name}", effects=effects)


def stop(name: str, *, effects: tuple[Effect, ...] = ()) -> Step:
    """Stop a unit that runs."""
    return run(("systemctl", "stop", name), f"stop {name}", effects=effects, disruption="service")
