# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pass report: what a run did to each host, from the results of the collection's modules as they came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..module_utils.plan import section

HEADER = ("host", "state", "changed", "waits for", "failed")
MANY = 5  # names of hosts that say the same


class Pass:
    """What one run has said of its hosts so far. A later result of a unit replaces an earlier one."""

    def __init__(self) -> None:
        self._units: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._changed: dict[str, list[str]] = {}
        self._faults: dict[str, str] = {}

    def add(self, host: str, result: Mapping[str, Any]) -> bool:
        """Take in a result, of a unit or of a whole host; whether it was one."""
        if isinstance(result.get("section"), Mapping):
            units = [unit for unit in result.get("units") or () if isinstance(unit, Mapping) and _is_unit(unit)]
            if not units and result["section"].get("state") != section.CONVERGED:
                self._faults[host] = str(result["section"].get("message"))
        elif _is_unit(result):
            units = [result]
        else:
            return False
        seen = self._units.setdefault(host, {})
        changed = self._changed.setdefault(host, [])
        for unit in units:
            name = str(unit["unit"])
            seen[name] = unit
            if unit.get("changed") and name not in changed:
                changed.append(name)
        return True

    def fault(self, host: str, message: str) -> None:
        """Take in why a host did not come to a result at all."""
        self._faults.setdefault(host, " ".join(message.split()))

    def lines(self) -> list[str]:
        """The table, and below it every reason in full; nothing when the run had nothing to do with us."""
        if not self._units:
            return []
        names = sorted({*self._units, *self._faults})
        rows = [HEADER, *(self._row(name) for name in names)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        sayings: dict[str, list[str]] = {}
        for name in names:
            for said in self._sayings(name):
                sayings.setdefault(said, []).append(name)
        return [*table, *(f"{_few(hosts)}: {said}" for said, hosts in sayings.items())]

    def _row(self, host: str) -> tuple[str, ...]:
        units = list(self._units.get(host, {}).values())
        waits: dict[str, list[str]] = {}
        failed: dict[str, list[str]] = {}
        for unit in units:
            for reason in dict.fromkeys(wait["reason"] for wait in unit["pending"]):
                waits.setdefault(reason, []).append(unit["unit"])
            if "reason" in unit:
                failed.setdefault(unit["reason"], []).append(unit["unit"])
        state = section.state_of(units).lower() if units or host not in self._faults else "no result"
        return (host, state, ", ".join(self._changed.get(host, ())) or "-", _grouped(waits), _grouped(failed))

    def _sayings(self, host: str) -> list[str]:
        said = [line for unit in self._units.get(host, {}).values() for line in section.sayings(unit)]
        return [*said, self._faults[host]] if host in self._faults else said


def _is_unit(result: Mapping[str, Any]) -> bool:
    return {"unit", "state", "pending", "steps"} <= result.keys()


def _few(hosts: list[str]) -> str:
    shown = hosts if len(hosts) <= MANY else [*hosts[: MANY - 1], f"{len(hosts) - MANY + 1} more"]
    return ", ".join(shown)


def _grouped(groups: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{reason}: {', '.join(units)}" for reason, units in groups.items()) or "-"
