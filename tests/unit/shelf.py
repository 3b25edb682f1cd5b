# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of few lines, for tests of what happens between units: each keeps one file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, remove, run, write


class Shelf:
    """Units by name, and how often each was looked at."""

    def __init__(self) -> None:
        self.units: dict[str, Unit] = {}
        self.looks: list[str] = []

    def __call__(self, name: str) -> Unit:
        """As the catalog's `unit`."""
        if name not in self.units:
            raise Refused(f"no unit {name}")
        return self.units[name]

    def keeper(self, name: str, path: str = "", needs: str = "", reboot: str = "", disruption: str = "none") -> None:
        """A unit that keeps its text in `path` once `needs` is there; `reboot` is what it then waits for."""
        path = path or f"/etc/{name}"

        def look(host: Host, _settings: Any, _past: Any) -> Now:
            self.looks.append(name)
            return Now(host.read(path), not needs or host.exists(needs))

        def plan(settings: Any, now: Now, _past: Past) -> Plan:
            todo = Todo()
            if not now.ready:
                todo.wait("NotReady", f"{name}: {needs} is missing")
            elif now.text != settings["text"]:
                todo.add(write(path, settings["text"], f"write {path}", disruption=disruption))
            if reboot:
                todo.wait("RebootRequired", reboot)
            return todo.plan()

        def absent(now: Now, _past: Past) -> Plan:
            return Plan((remove(path, f"remove {path}"),) if now.text is not None else ())

        self.units[name] = Unit(name, (), checked(name), look, plan, absent)

    def caller(self, name: str, program: str, brings: str) -> None:
        """A unit that runs `program` until the file `brings` is there."""

        def look(host: Host, _settings: Any, _past: Any) -> Now:
            self.looks.append(name)
            return Now(host.read(brings), True)

        def plan(_settings: Any, now: Now, _past: Past) -> Plan:
            step = run((program,), f"run {program}", effects=(Effect("appears", brings, f"{program} has run"),))
            return Plan((step,) if now.text is None else ())

        self.units[name] = Unit(name, (), checked(name), look, plan, lambda _now, _past: Plan())


class Now(NamedTuple):
    """What a keeper sees."""

    text: str | None
    ready: bool


def checked(name: str) -> Callable[[dict[str, Any]], Any]:
    """Settings as they are, unless they say no."""

    def check(given: dict[str, Any]) -> dict[str, Any]:
        if given.get("text") == "no":
            raise Refused(f"{name}: no is refused")
        return given

    return check
