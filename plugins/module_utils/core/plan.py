# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans: what a planner returns, and the notepad it writes one on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Callable, NamedTuple

from .errors import NotKnownYet, NotReady, StepFailed
from .outcome import Condition, Pending
from .past import Past, Question
from .seen import Answer, Ask
from .step import Step, fail, known_after

__all__ = (
    "Answer",
    "Ask",
    "Condition",
    "Field",
    "Past",
    "Pending",
    "Plan",
    "Question",
    "Todo",
    "Unit",
)


class Plan(NamedTuple):
    """All steps to the goal in order, what the unit waits for, and what it has to say.

    `found` holds result keys of the unit's own, beside those that every unit returns.
    """

    steps: tuple[Step, ...] = ()
    pending: tuple[Pending, ...] = ()
    conditions: tuple[Condition, ...] = ()
    notes: tuple[str, ...] = ()
    found: Mapping[str, Any] = {}


class Todo:
    """The notepad of one planning: collects steps lane by lane, then becomes a Plan."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._pending: list[Pending] = []
        self._conditions: list[Condition] = []
        self._notes: list[str] = []
        self._found: dict[str, Any] = {}
        self._lane = ""

    @contextmanager
    def lane(self, name: str) -> Iterator[None]:
        """Steps inside belong to the lane, which ends where something it needs is not there.

        What is not known yet becomes its line "<name>: known after ..."; what is not ready a wait; a look that failed
        a failed step, so that one dead GPU does not stop the others.
        """
        outer, self._lane = self._lane, name
        try:
            yield
        except NotKnownYet as unknown:
            self._steps.append(known_after(name, unknown.after, lane=name))
        except NotReady as fault:
            self.wait("NotReady", fault.message)
        except StepFailed as fault:
            self._steps.append(fail(f"look at {name}", fault.message, lane=name, retryable=fault.retryable))
        finally:
            self._lane = outer

    def add(self, *steps: Step) -> None:
        """Append steps; those without a lane join the one that is open."""
        self._steps.extend(step if step.lane else step._replace(lane=self._lane) for step in steps)

    def wait(self, reason: str, message: str) -> None:
        """Say what the unit waits for."""
        self._pending.append(Pending(reason, message, self._lane))

    def condition(self, kind: str, reason: str, message: str) -> None:
        """Report a condition that holds now."""
        self._conditions.append(Condition(kind, "true", reason, message))

    def note(self, *sentences: str) -> None:
        """Say something that never changes the unit's state."""
        self._notes.extend(sentences)

    def found(self, key: str, value: Any) -> None:
        """Return a result key of the unit's own."""
        self._found[key] = value

    def plan(self) -> Plan:
        """What was collected."""
        return Plan(
            tuple(self._steps), tuple(self._pending), tuple(self._conditions), tuple(self._notes), dict(self._found)
        )


class Field(NamedTuple):
    """One setting of a unit: its wire name, the module's option, and the exact types its value may have.

    A unit whose settings are one free mapping has a single field without a wire name. `fields` is the table of the
    mapping, or of each mapping of the list, that the setting is; empty where the setting's inside is the unit's affair.
    """

    wire: str
    option: str
    types: tuple[type, ...]
    fields: tuple[Any, ...] = ()  # of Field, which mypy cannot say of a NamedTuple inside itself


class Unit(NamedTuple):
    """One concern of a host. The settings of `check` and the snapshot of `look` are the unit's own NamedTuples.

    `look` gets None for settings when the unit is to be removed; what happened to the unit before may tell it how much
    to look at. `gather`, of a unit that has `state: gathered`, reads what the host is now: a plan without steps, whose
    `found` has it in the form that the settings take. What is no unit of a section (`recorded` false) leaves no trace
    in the record of the units that we applied, nor in that of what waits for a reboot.
    """

    name: str
    fields: tuple[Field, ...]
    check: Callable[[dict[str, Any]], Any]
    look: Callable[[Any, Any, Past], Any]
    plan: Callable[[Any, Any, Past], Plan]
    absent: Callable[[Any, Past], Plan]
    gather: Callable[[Any], Plan] | None = None
    recorded: bool = True
