# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit whose turn would come to what it came to before: seen by asking the host the same, and nothing else.

A turn follows from the settings, from what is remembered of the unit and from what the host answers; what it asks
follows from the answers before. So where every question of a quiet turn is answered as then, the turn is quiet again,
and neither the unit nor its plan and look are imported. At the first answer that differs the turn is made.

What was asked is kept in /run, by the code that runs, and ends with the boot. Nothing in it is believed of the host.
"""

from __future__ import annotations

import sys

from ..core.errors import Fault, Refused
from ..core.json_text import dumps, loads
from ..core.outcome import Condition, Outcome, Pending
from ..core.question import hexdigest, shown
from ..core.watched import Watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Callable

    from ..core.host import Host
    from ..core.question import Question
    from ..core.records import Records
    from ..core.secret import Given
    from ..plan.section import Turn

FOLDER = "/run/bcd-hostconfig/quiet"
VERSION = 1
LARGEST = 4 << 20  # bytes of a file
MOST_FILES = 3  # of codes that have run lately


class Recall:
    """The quiet turns of the code of this name; `watched` is the machine itself, below all that is predicted."""

    def __init__(self, watched: Watched, code: str) -> None:
        self._watched = watched
        self.path = f"{FOLDER}/{code}.json"
        self._kept: dict[str, Any] | None = None
        self._is_new = False

    def turn(self, turn: Turn, host: Host, records: Records, given: Given, make: Callable[[], Outcome]) -> Outcome:
        """The outcome of a unit's turn: as it was before where all is as it was, else what `make` comes to."""
        if given.secrets or isinstance(turn.settings, Refused):
            return make()
        settings = None if turn.leaves else turn.settings
        try:
            key = _key(turn.unit, settings, host, records, given)
        except Fault:
            return make()
        try:
            found = self._outcome(turn.unit, key, host)
            if found is not None:
                _remember(found, settings, host, records)
                return found._replace(notes=(*found.notes, *records.notes))
        except Exception:  # noqa: BLE001 - what is kept is damaged, or the turn itself says what it is
            pass
        return make() if host.predicted else self._recorded(turn.unit, key, records, make)

    def _recorded(self, unit: str, key: str, records: Records, make: Callable[[], Outcome]) -> Outcome:
        self._watched.begin()
        try:
            outcome = make()
        finally:
            asked = self._watched.end()
        if asked is not None and not (outcome.changed or outcome.steps or outcome.failure or records.notes):
            from .recall_file import entry

            found = entry(outcome, key, asked)
            if found is not None:
                self._units()[unit] = found
                self._is_new = True
        return outcome

    def _outcome(self, unit: str, key: str, host: Host) -> Outcome | None:
        """What the unit's turn comes to, None where it has to be made to know it."""
        kept = self._units().get(unit)
        if kept is None or kept["key"] != key:
            return None
        ask = host.digest_of if isinstance(host, Watched) else lambda question: shown(host, question)
        for answer, *question in kept["asked"]:
            if not answer or ask(_question(question)) != answer:
                return None
        return Outcome(
            unit=unit,
            changed=False,
            state=kept["state"],
            pending=tuple(Pending(*wait) for wait in kept["pending"]),
            conditions=tuple(Condition(*condition) for condition in kept["conditions"]),
            steps=(),
            notes=tuple(kept["notes"]),
            diff=(),
            failure=None,
            found=kept["found"],
        )

    # -- the file

    def _units(self) -> dict[str, Any]:
        if self._kept is None:
            self._kept = self._read()
        return self._kept

    def _read(self) -> dict[str, Any]:
        """What is kept by unit; nothing where the file is damaged, or not root's alone."""
        from ..look.config import root_text

        if self._watched.uid() != 0:
            return {}
        try:
            stamp = self._watched.stamp(self.path)
            text = root_text(self._watched, self.path) if stamp is not None and stamp[2] <= LARGEST else None
            found = loads(text or "{}")
            units = found["units"] if found["version"] == VERSION else {}
            return dict(units) if all(isinstance(unit, dict) for unit in units.values()) else {}
        except (Fault, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    def news(self) -> str:
        """The text of the file with what this pass has learnt; "" where it has learnt nothing."""
        return dumps({"version": VERSION, "units": self._units()}) if self._is_new else ""

    def save(self) -> None:
        """Keep what this pass has learnt; where it cannot be kept, the next one learns it again."""
        text = self.news()
        if 0 < len(text) <= LARGEST:
            from .recall_file import keep

            keep(self.path, text, MOST_FILES)


def _key(unit: str, settings: Any, host: Host, records: Records, given: Given) -> str:
    """What a turn follows from beside the answers of the host. Raises StepFailed for a record that is damaged."""
    past = records.past(unit)
    known = (past.boot_id, sorted(past.owed), sorted(past.tried.items()), past.applied)
    said = repr((sys.version, host.uid(), unit, settings, known, given.node_id, given.site, given.option))
    return hexdigest(said.encode("utf-8", "surrogatepass"))


def _question(kept: list[Any]) -> Question:
    """A question as JSON gave it back."""
    return tuple([tuple(part) if isinstance(part, list) else part for part in kept])


def _remember(outcome: Outcome, settings: Mapping[str, Any] | None, host: Host, records: Records) -> None:
    """Have the records say what they say after a quiet turn of the runner's."""
    unit = outcome.unit
    if not (host.predicted or records.is_asked(unit, settings)):
        records.ask_unit(unit, settings)
    owed = records.past(unit).owed
    if owed and not outcome.pending:
        records.settle(unit, tuple(owed))
    records.need_reboot(unit, "; ".join(wait.message for wait in outcome.pending))
    records.apply(unit, settings)
