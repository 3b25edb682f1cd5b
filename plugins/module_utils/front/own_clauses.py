# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode: what a unit's own steps make unknown is told by those steps, and is no line of the unit's next turn."""

from __future__ import annotations

from ..core.host import Host
from ..core.outcome import Done, Outcome
from ..core.predict import PredictedHost


class OwnClauses:
    """After what more is known ("the power limit of GPU 1 is set"), by the unit whose steps have said it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._seen = self._clauses()
        self._own: dict[str, set[str]] = {}

    def left_out(self, outcome: Outcome, earlier: Outcome | None) -> Outcome:
        """The outcome of the turn that ended just now, without lines that follow from the unit's `earlier` steps."""
        clauses = self._clauses()
        own = self._own.setdefault(outcome.unit, set())
        if earlier is not None:
            outcome = _news(outcome, earlier, own)
        own |= clauses - self._seen
        self._seen = clauses
        return outcome

    def _clauses(self) -> set[str]:
        return set(self._host.clauses) if isinstance(self._host, PredictedHost) else set()


def _news(outcome: Outcome, earlier: Outcome, own: set[str]) -> Outcome:
    told = tuple(line for line in outcome.steps if line in earlier.steps or not (line.later and _after(line) in own))
    if told == outcome.steps:
        return outcome
    if not told and outcome.failure is None:  # it could not look, and what it found before stands
        return earlier._replace(diff=())
    return outcome._replace(steps=told)


def _after(line: Done) -> str:
    return line.action.rpartition(": known after ")[2]
