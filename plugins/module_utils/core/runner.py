# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one runner: look, plan, apply, and look again until the plan is empty.

Check mode is the same loop over a predicted host. Nothing here knows Ansible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .errors import Fault, NotKnownYet, NotReady, Refused, StepFailed
from .host import Host
from .plan import Answer, Ask, Condition, Pending, Plan, Question, Unit
from .records import Records
from .step import DISRUPTIONS, File, Step

ROUNDS = 20  # looks of one unit in one pass
QUESTIONS = 50  # answers of one unit in one pass
POLL = 0.5  # seconds between looks while a lane settles


class Goal(NamedTuple):
    """What a unit is to become: its wire settings, or None to remove it."""

    unit: Unit
    settings: Mapping[str, Any] | None


class Done(NamedTuple):
    """A line of the result's `steps`."""

    action: str
    disruption: str
    done: bool


class Failure(NamedTuple):
    """Why a unit's task fails: `reason` is Refused or StepFailed."""

    reason: str
    message: str
    retryable: bool


class Outcome(NamedTuple):
    """What one pass did to one unit. `differs`: steps are still to be taken (check mode, or they were held back)."""

    unit: str
    changed: bool
    state: str
    pending: tuple[Pending, ...]
    conditions: tuple[Condition, ...]
    steps: tuple[Done, ...]
    notes: tuple[str, ...]
    diff: tuple[Mapping[str, str], ...]
    failure: Failure | None
    differs: bool


def converge(goal: Goal, host: Host, records: Records, max_disruption: str = "gpu") -> Outcome:
    """Bring one unit to its goal, or, over a predicted host, say what that would take. Never raises a Fault."""
    return _Pass(goal, host, records, max_disruption).outcome()


class _Pass:
    """The state of one unit's loop."""

    def __init__(self, goal: Goal, host: Host, records: Records, max_disruption: str) -> None:
        self.goal = goal
        self.name = goal.unit.name
        self.host = host
        self.records = records
        self.ceiling = DISRUPTIONS.index(max_disruption)
        self.plan = Plan()
        self.settings: Any = None
        self.answers: dict[Ask, Answer] = {}
        self.lines: list[Done] = []
        self.diff: list[Mapping[str, str]] = []
        self.applied: set[tuple[object, ...]] = set()
        self.ended: dict[str, Failure | None] = {}  # lanes that go no further in this pass
        self.held: dict[str, Pending] = {}
        self.failure: Failure | None = None
        self.waits: tuple[Pending, ...] = ()
        self.changed = False

    # -- the loop

    def outcome(self) -> Outcome:
        try:
            self._loop()
            self._remember()
        except Refused as fault:
            self.failure = self._refused(fault.message)
        except NotReady as fault:
            self.waits = (Pending("NotReady", fault.message),)
        except StepFailed as fault:
            self.failure = Failure("StepFailed", fault.message, fault.retryable)
        except OSError as fault:
            self.failure = Failure(
                "StepFailed", f"{fault.filename or 'the host'}: {fault.strerror}: mend it and run again", True
            )
        return self._report()

    def _loop(self) -> None:
        if self.goal.settings is not None:
            self.settings = self.goal.unit.check(dict(self.goal.settings))
        for _round in range(ROUNDS):
            self.plan = self._look_and_plan()
            if not self._apply(self.plan.steps):
                return
        raise StepFailed(f"{self.name} is not settled after {ROUNDS} looks: see its last steps for what keeps changing")

    def _look_and_plan(self) -> Plan:
        unit = self.goal.unit
        for _question in range(QUESTIONS):
            try:
                now = unit.look(self.host, self.settings)
                past = self.records.past(self.name)._replace(answers=self.answers, failed=self._failed())
                return unit.absent(now, past) if self.goal.settings is None else unit.plan(self.settings, now, past)
            except Question as question:
                self.answers[question.ask] = self._answer(question.ask)
            except NotKnownYet as unknown:
                return Plan((Step("later", f"{self.name}: known after {unknown.after}", path=self.name),))
        raise StepFailed(f"{self.name} asks more than {QUESTIONS} questions about one host", retryable=False)

    def _answer(self, ask: Ask) -> Answer:
        return self.host.answer(ask)

    def _apply(self, steps: tuple[Step, ...]) -> bool:
        """Apply the steps, lane by lane; whether any was applied or its lane failed, so that another look is due.

        A step without a lane belongs to the trunk: what follows stands on it, and ends with it.
        """
        any_applied = False
        failed = self._failed()
        paused: set[str] = set()  # lanes behind a barrier
        for step in steps:
            if {"", step.lane} & (paused | self.ended.keys()):
                continue
            if step.kind == "later":
                self._later(step)
            elif step.kind == "fail":
                self._fail(step, StepFailed(step.text))
            elif DISRUPTIONS.index(step.disruption) > self.ceiling or step.disruption == "reboot":
                self._hold_back(step)
            elif self._take(step):
                any_applied = True
                if step.barrier and not self.host.predicted:
                    paused.add(step.lane)
                    self._settle(step)
        return any_applied or ("" not in self.ended and self._failed() != failed)

    def _failed(self) -> frozenset[str]:
        return frozenset(lane for lane, failure in self.ended.items() if failure is not None)

    def _later(self, step: Step) -> None:
        line = Done(step.action, step.disruption, False)
        if line not in self.lines:
            self.lines.append(line)
        self.ended[step.lane] = None

    def _hold_back(self, step: Step) -> None:
        self.lines.append(Done(step.action, step.disruption, False))
        allowed = DISRUPTIONS[self.ceiling]
        message = (
            f"{self.name}: {step.action} has the disruption {step.disruption}, and max_disruption is {allowed}: "
            f"run again with max_disruption: {step.disruption}"
        )
        self.held.setdefault(step.lane, Pending("HeldBack", message, step.lane))
        self.ended[step.lane] = None

    def _take(self, step: Step) -> bool:
        """Apply one step, with its records; whether it went well."""
        if step.key in self.applied:
            if not self.host.predicted and not step.tries:
                self._fail(step, StepFailed(f"done without effect: {step.action} succeeded and {self._kept(step)}"))
            self.ended.setdefault(step.lane, None)
            return False
        try:
            self._before(step)
            seen = self._shown(step)
            self.host.apply(step)
            self._after(step, seen)
        except Fault as fault:
            self._fail(step, fault)
            return False
        return True

    def _kept(self, step: Step) -> str:
        """What the host shows after a step that came to nothing."""
        if step.kind != "set":
            return "the host shows no change"
        return f"the kernel keeps {_value(self._shown(step)) or 'nothing'}: ask for a value that it keeps"

    def _before(self, step: Step) -> None:
        if not self.applied and self.goal.settings is not None:
            self.records.apply(self.name, self.goal.settings)
        if step.owes:
            self.records.owe(self.name, step.owes)
            self.applied = {key for key in self.applied if key not in self._paying(step.owes)}

    def _paying(self, debts: tuple[str, ...]) -> set[tuple[object, ...]]:
        return {step.key for step in self.plan.steps if set(step.pays) & set(debts)}

    def _after(self, step: Step, before: File | None) -> None:
        self.applied.add(step.key)
        self.lines.append(Done(step.action, step.disruption, not self.host.predicted))
        if step.pays:
            self.records.settle(self.name, step.pays)
        after = self._shown(step)
        moved = step.kind == "run" or before != after
        if self.host.predicted and step.retry:
            moved = False
        if step.tries and not self.host.predicted:
            got = _value(after)
            self.records.tried(self.name, f"{step.path}={step.text}", None if got == step.text else got)
        if moved:
            self.changed = True
            if step.kind != "run":
                self.diff.append(_difference(step, before, after))

    def _shown(self, step: Step) -> File | None:
        """What the step's path shows now: a kernel value by its text, a file by its text and mode."""
        if step.kind == "run":
            return None
        if step.kind == "set":
            text = self.host.read(step.path)
            return None if text is None else File(text)
        return self.host.file(step.path)

    def _settle(self, step: Step) -> None:
        """Give the lane time to show the step's effect."""
        end = self.host.clock() + step.settle
        while self.host.clock() < end:
            plan = self._look_and_plan()
            waiting = any(wait.lane == step.lane and wait.reason == "NotReady" for wait in plan.pending)
            if not waiting and step.key not in {planned.key for planned in plan.steps}:
                return
            self.host.sleep(POLL)

    def _fail(self, step: Step, fault: Fault) -> None:
        self.lines.append(Done(step.action, step.disruption, False))
        retryable = fault.retryable if isinstance(fault, StepFailed) else False
        self.ended[step.lane] = Failure("StepFailed", fault.message, retryable)

    # -- the end

    def _refused(self, message: str) -> Failure:
        """A refusal found after a step was applied is a failed step: something was written."""
        done = bool(self.applied) and not self.host.predicted
        return Failure("StepFailed" if done else "Refused", message, False)

    def _remember(self) -> None:
        """Keep what the next pass and the reboot need; for units that differed in nothing too."""
        self.records.apply(self.name, self.goal.settings)
        owed = tuple(self.records.past(self.name).owed)
        if owed and not self.plan.steps:  # a pass died between a follow-up and its receipt, and the host shows it done
            self.records.settle(self.name, owed)
        reasons = [wait.message for wait in self.plan.pending if wait.reason == "RebootRequired"]
        self.records.need_reboot(self.name, "; ".join(reasons))

    def _report(self) -> Outcome:
        failures = [failure for failure in self.ended.values() if failure is not None]
        failure = self.failure or _joined(failures)
        pending = self.waits or (*self.plan.pending, *self.held.values())
        differs = any(not line.done for line in self.lines)
        if failure is not None:
            state = "progressing" if failure.retryable else "failed"
        else:
            state = "progressing" if pending or differs else "converged"
        later = any(not line.done and ": known after " in line.action for line in self.lines)
        changed = self.changed or (self.host.predicted and later)
        return Outcome(
            self.name,
            changed,
            state,
            tuple(pending),
            self.plan.conditions,
            tuple(self.lines),
            self.plan.notes,
            tuple(self.diff),
            failure,
            differs,
        )


def _joined(failures: list[Failure]) -> Failure | None:
    """One failure for all lanes: retryable while any is."""
    if not failures:
        return None
    messages = list(dict.fromkeys(failure.message for failure in failures))
    return Failure("StepFailed", "; ".join(messages), any(failure.retryable for failure in failures))


def _value(shown: File | None) -> str:
    return "" if shown is None else shown.text.strip()


def _difference(step: Step, before: File | None, after: File | None) -> Mapping[str, str]:
    """One entry of Ansible's diff: whole texts, with a mode that moved in the headers."""
    headers = [step.path, step.path]
    if before and after and before.mode != after.mode:
        headers = [f"{step.path} (mode {before.mode:04o})", f"{step.path} (mode {after.mode:04o})"]
    return {
        "before_header": headers[0],
        "after_header": headers[1],
        "before": "" if before is None else before.text,
        "after": "" if after is None else after.text,
    }
