# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd: what it is asked of a service, how one is started and stopped, and unit files of ours.

There is one question for each fact, and what changes the fact declares its answer, whichever unit asks it then.

A daemon-reload can cut running containers off their GPUs and drop cgroup controllers set by hand, so it is planned
only when a unit file of ours changed or the manager itself says that it is behind, once for all files of a plan, and it
is of the class `service` while holds exist. `systemctl enable` reloads too unless it is told not to.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect, File, Step, command_line, remove, run
from .files import drop, keep

RUNNING = "/run/systemd/system"  # is there exactly when systemd is PID 1
SYSTEM_STATE = ("systemctl", "is-system-running")
FOLDER = "/etc/systemd/system"
# Where units of packages and of administrators lie, in the order in which systemd takes them.
PACKAGED = "/usr/lib/systemd/system"
FOLDERS = (FOLDER, "/usr/local/lib/systemd/system", PACKAGED, "/lib/systemd/system")
HOLDS = "/etc/cdi"  # holds are its bcd-*.json
RELOAD = "daemon-reload"  # the debt
RUNS = ("active", "reloading", "refreshing")  # the states, as systemd prints them, of what is up
NEXT_BOOT = ("enable", "disable", "mask", "unmask")  # verbs
DISRUPTION = {"stop": "service", "restart": "service"}  # of a verb


class Systemd(NamedTuple):
    """Whether systemd manages this host, and whether containers hold GPUs through our CDI files."""

    running: bool
    holds: bool = False


class Service(NamedTuple):
    """A service as systemd has it. `load` is "loaded", or "not-found" where there is no unit of the name.

    `active` is the state that systemd prints: active, inactive, failed, activating ... `enabled` is what it prints of
    the next boot: enabled, disabled, static, masked ...
    """

    load: str = "not-found"
    active: str = "inactive"
    enabled: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is up."""
        return self.active in RUNS

    @property
    def is_masked(self) -> bool:
        """Whether it is kept from being started at all."""
        return self.enabled.startswith("masked")


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


def asks_active(name: str) -> tuple[str, ...]:
    """The question for a unit's state, which it prints; it exits 0 where that is active. `name` has its suffix."""
    return ("systemctl", "is-active", name)


def asks_enabled(name: str) -> tuple[str, ...]:
    """The question whether the next boot starts a unit, which it prints."""
    return ("systemctl", "is-enabled", name)


def asks_reload(name: str) -> tuple[str, ...]:
    """The question whether the manager has loaded another version of a unit than is on disk; it prints yes or no."""
    return ("systemctl", "show", "--property=NeedDaemonReload", "--value", name)


def keep_unit(todo: Todo, seen: UnitFile, text: str) -> bool:
    """Plan the file and its enabling, as far as they are missing; whether a daemon-reload has to follow."""
    wrote = keep(todo, seen.path, text, seen.file, owes=(RELOAD,))
    if not seen.enabled:
        todo.add(enable_ours(seen))
    return wrote


def drop_unit(todo: Todo, seen: UnitFile) -> bool:
    """Plan the removal of the link and the file, as far as they are there; whether a daemon-reload has to follow."""
    if seen.enabled:
        todo.add(remove(seen.link, f"disable {seen.name}", owes=(RELOAD,)))
    return drop(todo, seen.path, seen.file, owes=(RELOAD,)) or seen.enabled


def enable_ours(seen: UnitFile) -> Step:
    """Enable a unit of ours, whose link shows it."""
    return control("enable", seen.name, effects=(Effect("file", seen.link),))


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
                effects=tuple(Effect("answers", command_line(asks_reload(unit.name)), "no\n") for unit in units),
            )
        )


def control(
    verb: str,
    name: str,
    action: str = "",
    *,
    disruption: str = "",
    barrier: bool = False,
    settle: float = 0.0,
    owes: tuple[str, ...] = (),
    pays: tuple[str, ...] = (),
    tries: str = "",
    effects: tuple[Effect, ...] = (),
) -> Step:
    """Have systemctl start, restart, stop, enable, disable, mask or unmask a unit, whose name has its suffix.

    What the unit's state then is, it declares itself; `effects` say what else a look sees. By default stopping and
    restarting have the class `service`. What is of the next boot does without the daemon-reload that systemctl adds.
    """
    options = ("--no-reload",) if verb in NEXT_BOOT else ()
    return run(
        ("systemctl", verb, *options, name),
        action or f"{verb} {name}",
        disruption=disruption or DISRUPTION.get(verb, "none"),
        barrier=barrier,
        settle=settle,
        owes=owes,
        pays=pays,
        tries=tries,
        effects=(*_then(verb, name), *effects),
    )


def _then(verb: str, name: str) -> tuple[Effect, ...]:
    """What systemd says of the unit after the verb."""
    if verb in NEXT_BOOT:
        from .systemd_next_boot import then

        return then(verb, name)
    if verb == "stop":
        return (Effect("fails", command_line(asks_active(name)), "inactive\n"),)
    return (Effect("answers", command_line(asks_active(name)), "active\n"),)
