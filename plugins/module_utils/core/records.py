# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root remembers about a host between passes, in a directory that only root writes.

Each record is one JSON object with a `version`; it is written only when it changes.

* ``applied.json``: the settings of the units that we applied, so that one that leaves the section is cleaned,
* ``owed.json``: follow-ups of steps whose pass may have died before they ran: generators, reloads and restarts,
  services that were stopped, modules that were taken out, packages that were let off their hold,
* ``tried.json``: what came to nothing in this boot: kernel values that came up short, runs that changed nothing,
* ``reboot.json``: what waits for a reboot, and in which boot that was said,
* ``asked.json``: what the last passes were asked, which bcd agent keeps where nothing is signed (see front.asked).
"""

from __future__ import annotations

from .errors import NotKnownYet, StepFailed, Unreadable
from .past import Past
from .state import STATE, VERSION, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from .host import Host

# What a unit's entry is.
KINDS: dict[str, type] = {"applied": dict, "owed": list, "tried": dict, "reboot": str, "asked": dict}


class Records:
    """The records of one host. Over a predicted host they live in memory: check mode writes nothing."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._kept: dict[str, dict[str, Any]] = {}
        self._spared: list[str] = []
        self._options: dict[str, Any] = {}
        self._boot: str | None = None  # which boot this is: the same for as long as we run

    @property
    def notes(self) -> tuple[str, ...]:
        """The damaged records that a pass goes on without, a sentence each: nothing is lost with them."""
        return tuple(
            f"{_path(name)} is not a record of version {VERSION}, and the pass goes on without it: look at it, then "
            "move it away"
            for name in self._spared
        )

    # -- what a planner is told

    def past(self, unit: str) -> Past:
        """What happened to the unit before; values tried in an earlier boot do not count."""
        boot = self._boot_id()
        tried = self._spare("tried")
        owed = self._load("owed").get("units", {}).get(unit, ())
        mine = tried.get("units", {}).get(unit, {}) if tried.get("boot_id") == boot else {}
        return Past(boot_id=boot, owed=frozenset(owed), tried=dict(mine), applied=self.applied())

    def owe(self, unit: str, debts: tuple[str, ...]) -> None:
        """Record follow-ups before the step that needs them."""
        units = dict(self._load("owed").get("units", {}))
        units[unit] = sorted({*units.get(unit, ()), *debts})
        self._save("owed", {"units": units})

    def settle(self, unit: str, debts: tuple[str, ...]) -> None:
        """Drop follow-ups that have been done."""
        units = dict(self._load("owed").get("units", {}))
        left = [debt for debt in units.pop(unit, ()) if debt not in debts]
        self._save("owed", {"units": {**units, unit: left} if left else units})

    def tried(self, unit: str, asked: str, got: str | None) -> None:
        """Record what came of a try in this boot (see Past.tried); None forgets it."""
        boot = self._boot_id()
        record = self._spare("tried")
        units = dict(record.get("units", {})) if record.get("boot_id") == boot else {}
        mine = {key: value for key, value in units.pop(unit, {}).items() if key != asked}
        if got is not None:
            mine[asked] = got
        self._save("tried", {"boot_id": boot, "units": {**units, unit: mine} if mine else units})

    # -- what we applied

    def applied(self) -> dict[str, Any]:
        """Wire settings by unit, as last applied."""
        return dict(self._load("applied").get("units", {}))

    def apply(self, unit: str, settings: Mapping[str, Any] | None) -> None:
        """Remember the unit's settings before its first step; None: it was removed."""
        record = self._load("applied")
        units = {name: given for name, given in record.get("units", {}).items() if name != unit}
        if settings is not None:
            units[unit] = dict(settings)
        if units != record.get("units", {}):
            self._save("applied", {**record, "units": units})

    def generation(self) -> int | None:
        """The generation of the last section that ended converged or failed."""
        seen = self._load("applied").get("observed_generation")
        return seen if isinstance(seen, int) and not isinstance(seen, bool) else None

    def observe(self, generation: int) -> None:
        """Remember the generation of a section that ended."""
        self._save("applied", {"units": {}, **self._load("applied"), "observed_generation": generation})

    # -- what we were asked

    def asked(self) -> dict[str, Any]:
        """What passes were asked, `units` and more (see front.asked); {} before the first. Raises StepFailed."""
        return dict(self._load("asked"))

    def options(self, **parts: Any) -> None:
        """What this pass is asked beside a unit's settings, to be remembered with the first that are."""
        self._options = parts

    def is_asked(self, unit: str, settings: Mapping[str, Any] | None) -> bool:
        """Whether that is remembered already: the settings, None for a unit that goes, and the options of this pass."""
        asked = self._spare("asked")
        same = "units" in asked and asked["units"].get(unit) == settings
        return same and all(asked.get(part) == options for part, options in self._options.items())

    def ask(self, **parts: Any) -> None:
        """Remember these parts of what is asked, before the first step; raises StepFailed."""
        self._save("asked", {**self._spare("asked"), **self._options, **parts})

    def ask_unit(self, unit: str, settings: Mapping[str, Any] | None) -> None:
        """Remember that a unit is to have these settings, or to go; the first brings in what was applied."""
        asked = self._spare("asked").get("units")
        units = {name: given for name, given in (self.applied() if asked is None else asked).items() if name != unit}
        self.ask(units=units if settings is None else {**units, unit: dict(settings)})

    def ask_only(self, units: Collection[str]) -> None:
        """Forget what was asked of other units than these: what left the section before it was begun."""
        asked = self._spare("asked").get("units", {})
        kept = {name: given for name, given in asked.items() if name in units}
        if kept != asked:
            self.ask(units=kept)

    # -- reboots

    def reboot_reasons(self) -> dict[str, str]:
        """Message by unit that waits for a reboot, as of the last pass in this boot."""
        record = self._load("reboot")
        return dict(record.get("units", {})) if record.get("boot_id") == self._boot_id() else {}

    def rebooted_for(self) -> dict[str, str]:
        """Message by unit that waited for a reboot that has happened since, and that no pass has looked at yet."""
        record = self._load("reboot")
        return {} if record.get("boot_id") in (None, self._boot_id()) else dict(record.get("units", {}))

    def need_reboot(self, unit: str, message: str) -> None:
        """Remember why the unit waits for a reboot; an empty message: it does not."""
        record = self._spare("reboot")
        units = {name: why for name, why in self.reboot_reasons().items() if name != unit}
        if message:
            units[unit] = message
        if units or record.get("units"):
            self._save("reboot", {"boot_id": self._boot_id(), "units": units})

    def _boot_id(self) -> str:
        if self._boot is None:
            self._boot = self._host.boot_id()
        return self._boot

    # -- files

    def _load(self, name: str) -> dict[str, Any]:
        if name in self._kept:
            return self._kept[name]
        try:
            self._kept[name] = self._read(name)
        except Unreadable:
            raise
        except StepFailed:
            raise self._damaged() from None
        return self._kept[name]

    def _read(self, name: str, lost: str = "") -> dict[str, Any]:
        try:
            text = self._host.read(_path(name))
        except NotKnownYet:  # an unprivileged look at root's record
            return {}
        return {} if text is None else parse(_path(name), text, lambda found: _is_whole(name, found), lost)

    def _spare(self, name: str) -> dict[str, Any]:
        """A record that a pass can do without: of one that is damaged nothing, and it is noted."""
        try:
            return self._load(name)
        except Unreadable:
            raise
        except StepFailed:
            self._spared.append(name)
            self._kept[name] = {}
            return {}

    def _damaged(self) -> StepFailed:
        """One fault that names every record that is damaged, so that all are moved away at once."""
        from .records_damaged import WITHOUT

        faults = []
        for name in KINDS:
            try:
                self._read(name, WITHOUT[name])
            except Unreadable:  # a fault of its own
                continue
            except StepFailed as fault:
                faults.append(fault.message)
        return StepFailed("; ".join(faults), retryable=False)

    def _save(self, name: str, record: dict[str, Any]) -> None:
        record = {**record, "version": VERSION}
        if record == self._load(name):
            return
        if not self._host.predicted:
            from .host import advice
            from .state import render

            try:
                self._host.write(_path(name), render(record), 0o600)
            except OSError as fault:
                raise StepFailed(f"cannot write {_path(name)}: {fault.strerror or fault}{advice(fault)}") from None
        self._kept[name] = record


def _path(name: str) -> str:
    return f"{STATE}/{name}.json"


def _is_whole(name: str, record: dict[str, Any]) -> bool:
    """Whether the record's units hold what they should."""
    units = record.get("units", {})
    whole = isinstance(units, dict) and all(isinstance(value, KINDS[name]) for value in units.values())
    return whole and all(isinstance(record.get(part, {}), dict) for part in ("host", "limits", "devices"))
