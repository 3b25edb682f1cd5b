# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pass report: what a run did to each host, from the results of the collection's modules as they came in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..module_utils.plan import section
from .devices import as_unit, is_of_devices, is_of_events
from .one_line import cells, cut, fill, plain
from .report import unit_of
from .said import of_any_host, of_these, steps_in_rows, who
from .shapes import TEXT, Each, maybe

KIND, VERSION = "PassReport", 1
HEADER = ("host", "state", "changed", "waits for", "failed")
PLANNED = ("host", "state", "would change", "would wait for", "failed")
MANY = 5  # names of hosts that say the same
AGAIN, NEVER = "another run may help", "no run helps before that is mended"
NOTE = 240  # characters of a note; the whole of it is in the result
CELL, LINE = 120, 4000  # columns of a cell of the table, and of a line below it


class Pass:
    """What one run has said of its hosts so far. A later result of a unit replaces an earlier one."""

    def __init__(self) -> None:
        self._units: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._changed: dict[str, list[str]] = {}
        self._faults: dict[str, str] = {}
        self._ours = False  # whether the run had anything to do with us
        self._astray: set[str] = set()  # hosts that came to no result, and to no whole host's result since
        self._planned: dict[str, bool] = {}
        self._repaired: dict[str, str] = {}  # by host, what bcd agent did since the run before
        self._kept: dict[str, str] = {}  # by host, which MIG layout waits while its GPUs are in use

    def add(self, host: str, result: Mapping[str, Any], planned: bool = False) -> bool:
        """Take in a result, of a unit or of a whole host, `planned` where nothing was done; whether it was one."""
        if is_of_events(result) and not result.get("reason"):
            self._ours = True  # what was said of the holds stands
            return True
        units: list[Mapping[str, Any]]
        if is_of_devices(result):
            units = [as_unit(result)]
        elif isinstance(result.get("section"), Mapping):
            self._astray.discard(host)
            units = [unit for unit in result.get("units") or () if isinstance(unit, Mapping) and _is_unit(unit)]
            if not units and result["section"].get("state") != section.CONVERGED:
                self._faults[host] = str(result["section"].get("message"))
        elif _is_unit(result):
            units = [result]
        else:
            return False
        self._ours = True
        repaired = _repaired(result)
        if repaired:
            self._repaired[host] = repaired
        seen = self._units.setdefault(host, {})
        changed = self._changed.setdefault(host, [])
        self._planned[host] = planned
        for unit in map(unit_of, units):
            name = unit["unit"]
            seen[name] = _after(seen.get(name), unit)
            if unit["changed"] and name not in changed:
                changed.append(name)
        return True

    def tell(self, host: str, status: Mapping[str, Any], planned: bool = False) -> bool:
        """Take in a whole host's result as it was kept, whose `msg` may be of what came after it, such as a lookup."""
        said, whole = str(status.get("msg") or ""), status.get("section")
        told = whole.get("message") if isinstance(whole, Mapping) else None
        taken = self.add(host, status, planned)
        units = self._of(host)
        if taken and said and said != told and not any("reason" in unit for unit in units):
            self.fault(host, said)
        return taken

    def fault(self, host: str, message: str, ours: bool = True) -> None:
        """Take in why a host did not come to a result at all; `ours`: in a task of this collection."""
        self._ours = self._ours or ours
        self._faults.setdefault(host, " ".join(message.split()))
        self._astray.add(host)

    def layout_waits(self, host: str, said: str) -> None:
        """Take in which layout waits for GPUs that are in use; "" for none. No unit of the host's says it."""
        self._kept[host] = section.named("mig-layout", said) if said else ""

    def lines(self) -> list[str]:
        """The table, below it every reason in full, the failures first, the notes, and the steps of what was planned.

        Nothing when the run had nothing to do with us. Nothing that a terminal obeys, whatever hosts are called or say.
        """
        if not self._ours:
            return []
        names = sorted({*self._units, *self._faults}, key=lambda name: (not self._is_failing(name), name))
        header = PLANNED if self._planned and all(self._planned.values()) else HEADER
        rows = [header, *(tuple(cut(plain(cell), CELL) for cell in self._row(name)) for name in names)]
        widths = [max(cells(row[column]) for row in rows) for column in range(len(header))]
        table = ["  ".join(map(fill, row, widths)).rstrip() for row in rows]
        told = [
            (name, said)
            for say in (self._failures, self._waits, self._conditions, self._notes)
            for name in names
            for said in say(name)
        ]
        plans = [(name, "\n".join(self._steps(name))) for name in names]
        sayings = [f"{_few(hosts)}: {said}" for hosts, said in _alike(told)]
        steps = [line for hosts, plan in _alike(plans) if plan for line in (f"{_few(hosts)} would:", *plan.split("\n"))]
        return [*table, *(cut(plain(line), LINE) for line in (*sayings, *steps))]

    def document(self) -> dict[str, Any]:
        """The same as one value that is written as JSON; of a run that had nothing to do with us, without hosts.

        `kind` "PassReport", `version` 1, and `hosts` by name, each with

        * `state`: "converged", "progressing", "failed", or "no result"; `planned`: nothing was done,
        * `changed`: units that changed, or would; `waits_for` and `failed`: units by reason,
        * `failures`, `waits`, `conditions`, `notes`: what the lines below the table say; `steps`: of a plan, in order.

        It holds no time, so that two runs that came to the same are the same bytes.
        """
        names = sorted({*self._units, *self._faults}) if self._ours else []
        return {"kind": KIND, "version": VERSION, "hosts": {name: self._entry(name) for name in names}}

    def _entry(self, host: str) -> dict[str, Any]:
        waits, failed = self._reasons(host)
        planned = self._planned.get(host, False)
        return {
            "state": self._state(host),
            "planned": planned,
            "changed": list(self._changed.get(host, ())),
            "waits_for": waits,
            "failed": failed,
            "failures": self._failures(host),
            "waits": self._waits(host),
            "conditions": self._conditions(host),
            "notes": self._remarks(host, str),
            "steps": [line for unit in self._of(host) for line in _due(unit)] if planned else [],
        }

    def _of(self, host: str) -> list[Mapping[str, Any]]:
        return list(self._units.get(host, {}).values())

    def _is_failing(self, host: str) -> bool:
        units = self._of(host)
        return host in self._astray or any("reason" in unit for unit in units) or (host in self._faults and not units)

    def _reasons(self, host: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """The units that wait, and those that failed, by reason."""
        waits: dict[str, list[str]] = {}
        failed: dict[str, list[str]] = {}
        for unit in self._of(host):
            for reason in dict.fromkeys(wait["reason"] for wait in unit["pending"]):
                waits.setdefault(reason, []).append(unit["unit"])
            if "reason" in unit:
                failed.setdefault(unit["reason"], []).append(unit["unit"])
        return waits, failed

    def _row(self, host: str) -> tuple[str, ...]:
        waits, failed = self._reasons(host)
        every = [unit["unit"] for unit in self._of(host)]
        return (
            host,
            self._state(host),
            ", ".join(self._changed.get(host, ())) or "-",
            _grouped(waits, every),
            _grouped(failed, every),
        )

    def _state(self, host: str) -> str:
        """A host with a unit that failed is failed, though its section goes on while another waits."""
        units = self._of(host)
        if not units and host in self._faults:
            return "no result"
        return "failed" if self._is_failing(host) else section.state_of(units).lower()

    # -- the lines below the table

    def _failures(self, host: str) -> list[str]:
        faults = [self._faults[host]] if host in self._faults else []
        return faults + self._merged(host, lambda unit: [_failure(unit)] if "reason" in unit else [])

    def _waits(self, host: str) -> list[str]:
        """Why units are not converged; the steps that a plan has left stand in a list of their own."""

        def waits(unit: Mapping[str, Any]) -> list[str]:
            if self._planned.get(host) and not unit["pending"]:
                return []
            return [said for said in section.sayings(unit) if "reason" not in unit or said != unit["msg"]]

        return self._merged(host, waits)

    def _conditions(self, host: str) -> list[str]:
        """Faults that others act on, of units that wait for nothing and so have not told them yet."""
        return self._merged(host, lambda unit: [] if unit["pending"] else map(_condition, unit.get("conditions") or ()))

    def _notes(self, host: str) -> list[str]:
        return [f"note: {said}" for said in self._remarks(host, _short)]

    def _remarks(self, host: str, say: Callable[[str], str]) -> list[str]:
        told = [said for said in (self._repaired.get(host), self._kept.get(host)) if said]
        return told + self._merged(host, lambda unit: map(say, unit.get("notes") or ()))

    def _merged(self, host: str, ask: Any) -> list[str]:
        """What the host's units say, each sentence once."""
        units = self._of(host)
        every = [unit["unit"] for unit in units]
        told = [(unit["unit"], said) for unit in units for said in ask(unit)]
        return [section.named(who(names, every), said) for names, said in section.merged(told)]

    def _steps(self, host: str) -> list[str]:
        """What the host's units would do, numbered."""
        if not self._planned.get(host):
            return []
        lines = [line for unit in self._of(host) for line in _due(unit)]
        width = len(str(len(lines)))
        return [f"  {number:{width}}. {line}" for number, line in enumerate(lines, 1)]


def _alike(told: list[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """What each host says, by text; what differs in nothing but the host's own name is one text."""
    merged = section.merged((host, of_any_host(host, text)) for host, text in told)
    return [(hosts, of_these(hosts, text)) for hosts, text in merged]


def _after(earlier: Mapping[str, Any] | None, unit: Mapping[str, Any]) -> Mapping[str, Any]:
    """The later result; a failure stands while what it left undone is still to do, and was not tried again."""
    if earlier is None or "reason" not in earlier or "reason" in unit or not section.steps_left(unit):
        return unit
    return {**unit, **{key: earlier[key] for key in ("reason", "retryable", "msg") if key in earlier}}


def _due(unit: Mapping[str, Any]) -> list[str]:
    found = []
    for action, step in steps_in_rows(section.steps_left(unit)):
        disruption = f" ({step['disruption']})" if step["disruption"] != "none" else ""
        found.append(section.named(unit["unit"], action) + disruption)
    return found


def _failure(unit: Mapping[str, Any]) -> str:
    """Why the unit failed, and whether another run may help."""
    return f"{unit['msg']} ({AGAIN if unit.get('retryable') else NEVER})"


def _repaired(result: Mapping[str, Any]) -> str:
    """What bcd agent did on the host since the run before, in one line; "" where it did nothing."""
    agent = maybe(result.get("agent"), {"repairs": Each({"unit": TEXT})})
    repairs = agent["repairs"] if agent else []
    if not repairs:
        return ""
    units = ", ".join(dict.fromkeys(repair["unit"] for repair in repairs))
    return f"bcd agent repaired drift since the run before: {units} ({len(repairs)} step{'s' if repairs[1:] else ''})"


def _condition(each: Mapping[str, Any]) -> str:
    return f"{each['type']}: {each['message']}"


def _is_unit(result: Mapping[str, Any]) -> bool:
    return {"unit", "state", "pending", "steps"} <= result.keys()


def _short(note: str) -> str:
    return note if len(note) <= NOTE else note[: NOTE - 4].rstrip() + " ..."


def _few(hosts: list[str]) -> str:
    shown = hosts if len(hosts) <= MANY else [*hosts[: MANY - 1], f"{len(hosts) - MANY + 1} more"]
    return ", ".join(shown)


def _grouped(groups: Mapping[str, list[str]], every: list[str]) -> str:
    return "; ".join(f"{reason}: {who(units, every)}" for reason, units in groups.items()) or "-"
