# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd: how a service is started and stopped, and how unit files of ours are kept.

What changes a fact declares the answer to the question for it (systemd_asks), whichever unit asks it then.

A daemon-reload can cut running containers off their GPUs and drop cgroup controllers set by hand, so it is planned
only when a unit file of ours changed or the manager itself says that it is behind, once for all files of a plan, and it
is of the class `service` while holds exist. `systemctl enable` reloads too unless it is told not to.
"""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, Step, command_line, remove, run
from .files import drop, keep
from .systemd_asks import asks_active, asks_reload
from .systemd_seen import RELOAD, Systemd, UnitFile

NEXT_BOOT = ("enable", "disable", "mask", "unmask")  # verbs
DISRUPTION = {"stop": "service", "restart": "service"}  # of a verb


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
