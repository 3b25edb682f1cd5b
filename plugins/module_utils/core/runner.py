# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one runner: look, plan, apply, and look again until the plan is empty.

Check mode is the same loop over a predicted host. Nothing here knows Ansible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .changes import Changes, shown, value
from .errors import Fault, NotKnownYet, NotReady, Refused, StepFailed
from .host import Host
from .outcome import Done, Failure, Outcome, joined, our_fault
from .plan import Answer, Ask, Past, Pending, Plan, Question, Unit
from .records import Records
from .secret import Given
from .step import DISRUPTIONS, File, Step, known_after
from .unknown import later

ROUNDS = 20  # looks of one unit in one pass
QUESTIONS = 50  # answers of one unit in one pass
POLL = 0.5  # seconds between looks while a lane settles


class Goal(NamedTuple):
    """What a unit is to become: its wire settings, or None to remove it."""

    unit: Unit
    settings: Mapping[str, Any] | None
    given: Given = Given()


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
        self.changes = Changes()
        self.applied: set[tuple[object, ...]] = set()  # in earlier rounds: planned again, they had no effect
        self.round: set[tuple[object, ...]] = set()
        self.forgotten: set[tuple[object, ...]] = set()  # of these, what was undone since: once in a pass
        self.filed: dict[str, set[tuple[object, ...]]] = {}  # by path: what was written there, and its removal
        self.owing: dict[str, set[tuple[object, ...]]] = {}  # by debt, also of plans that have come and gone
        self.paying: dict[str, set[tuple[object, ...]]] = {}
        self.ended: dict[str, Failure | None] = {}  # lanes that go no further in this pass
        self.declined: set[str] = set()  # of those, where the kernel does not take the value
        self.held: dict[str, Pending] = {}
        self.needs: dict[str, Pending] = {}  # by reference: secrets that were not given
        self.vain: set[str] = set()
        self.not_owed: set[str] = set()  # the follow-ups of what was held back
        self.failure: Failure | None = None
        self.waits: tuple[Pending, ...] = ()

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
        except Exception as fault:  # noqa: BLE001 - a fault of ours in one unit must not end the others
            self.failure = Failure("StepFailed", self.goal.given.masked(f"{self.name}: {our_fault(fault)}"), False)
        return self._report()

    def _loop(self) -> None:
        if self.goal.settings is not None:
            self.settings = self.goal.unit.check(dict(self.goal.settings))
        for _round in range(ROUNDS):
            self.plan = self._look_and_plan()
            if not self._apply(self.plan.steps):
                return
            self.applied |= self.round
            self.round = set()
        raise StepFailed(f"{self.name} is not settled after {ROUNDS} looks: see its last steps for what keeps changing")

    def _look_and_plan(self) -> Plan:
        """The plan over what the host shows now; a prediction that its own steps made unknown keeps the plan it had."""
        try:
            now = self.goal.unit.look(self.host, self.settings, self._past())
            return self._plan_with_answers(now)
        except NotKnownYet as unknown:
            if self.host.predicted and self.applied:
                return self.plan._replace(steps=())
            return Plan((known_after(self.name, unknown.after),))

    def _plan_with_answers(self, now: Any) -> Plan:
        """Plan, answering the planner's questions; an answer stands until a step changes the host."""
        unit = self.goal.unit
        for _question in range(QUESTIONS):
            past = self._past()
            try:
                return unit.absent(now, past) if self.goal.settings is None else unit.plan(self.settings, now, past)
            except Question as question:
                self.answers[question.ask] = later(self.host.answer, question.ask)
        raise StepFailed(f"{self.name} asks more than {QUESTIONS} questions about one host", retryable=False)

    def _past(self) -> Past:
        return self.records.past(self.name)._replace(
            answers=self.answers,
            failed=self._failed(),
            declined=frozenset(self.declined),
            vain=frozenset(self.vain),
            given=self.goal.given,
        )

    def _apply(self, steps: tuple[Step, ...]) -> bool:
        """Apply the steps, lane by lane; whether another look is due, since one was applied or came to nothing.

        A step without a lane belongs to the trunk: what follows stands on it, and ends with it. After lanes it is
        where they join: it waits with a lane that waits behind a barrier.
        """
        look_again = False
        failed = self._failed()
        paused: set[str] = set()  # lanes behind a barrier
        for step in steps:
            if not step.lane and paused:
                paused.add("")
            if self._is_over(step.lane, paused) or self._owes_nothing(step):
                continue
            if step.kind == "later":
                self._later(step)
            elif step.kind == "fail":
                self._fail(step, StepFailed(step.text, retryable=step.retry))
            elif DISRUPTIONS.index(step.disruption) > self.ceiling or step.disruption == "reboot":
                self._hold_back(step)
            elif self._lacks(step):
                continue
            elif self._take(step):
                look_again = True
                if step.barrier and not self.host.predicted:
                    paused.add(step.lane)
                    self._settle(step)
        return look_again or ("" not in self.ended and self._failed() != failed)

    def _is_over(self, lane: str, paused: set[str]) -> bool:
        return "" in self.ended or lane in self.ended or "" in paused or lane in paused

    def _failed(self) -> frozenset[str]:
        return frozenset(lane for lane, failure in self.ended.items() if failure is not None)

    def _later(self, step: Step) -> None:
        line = Done(step.action, step.disruption, False, later=True)
        if line not in self.lines:
            self.lines.append(line)
        self.ended[step.lane] = None

    def _owes_nothing(self, step: Step) -> bool:
        """Whether the step settles only what was held back: what was not stopped is not started again."""
        debts = set(step.pays)
        return bool(debts) and debts <= self.not_owed and not debts & self.records.past(self.name).owed

    def _hold_back(self, step: Step) -> None:
        self.not_owed |= set(step.owes)
        self.lines.append(Done(step.action, step.disruption, False))
        allowed = DISRUPTIONS[self.ceiling]
        message = (
            f"{self.name}: {step.action} has the disruption {step.disruption}, and max_disruption is {allowed}: "
            f"run again with max_disruption: {step.disruption}"
        )
        self.held.setdefault(step.lane, Pending("HeldBack", message, step.lane))
        self.ended[step.lane] = None

    def _lacks(self, step: Step) -> bool:
        """Whether the step waits for a secret; a prediction goes on without it."""
        if not step.secret or step.secret in self.goal.given.secrets:
            return False
        message = f"{self.name}: {step.action} needs {self.goal.given.missing(step.secret, self.host.predicted)}"
        self.needs.setdefault(step.secret, Pending("NotReady", message, step.lane))
        if self.host.predicted:
            return False
        self.lines.append(Done(step.action, step.disruption, False))
        self.ended[step.lane] = None
        return True

    def _take(self, step: Step) -> bool:
        """Apply one step, with its records; whether another look is due for it."""
        if step.key in self.applied:
            if step.kind == "run" and step.tries and not self.host.predicted:
                return self._in_vain(step, "")
            if not self.host.predicted and not step.tries:
                self._fail(step, StepFailed(f"done without effect: {step.action} succeeded and {self._kept(step)}"))
            self.ended.setdefault(step.lane, None)
            return False
        try:
            self._before(step)
            seen = shown(self.host, step)
            self.host.apply(self.goal.given.filled(step))
            self._after(step, seen)
        except Fault as fault:
            if step.kind == "run" and step.tries:
                return self._in_vain(step, fault.message)
            self._fail(step, fault)
            return False
        finally:
            self.answers.clear()
        return True

    def _in_vain(self, step: Step, said: str) -> bool:
        """A run that may come to nothing did: the planner reads why, and says what the unit waits for."""
        self.records.tried(self.name, step.tries, self.goal.given.masked(said))
        self.vain.add(step.tries)
        if said:
            self.lines.append(Done(step.action, step.disruption, False))
        self.ended[step.lane] = None
        return True

    def _kept(self, step: Step) -> str:
        """What the host shows after a step that came to nothing."""
        if step.kind != "set":
            return "the host shows no change"
        return f"the kernel keeps {value(shown(self.host, step)) or 'nothing'}: ask for a value that it keeps"

    def _before(self, step: Step) -> None:
        if not (self.applied or self.round) and self.goal.settings is not None and self.goal.unit.recorded:
            self.records.apply(self.name, self.goal.settings)
        if step.owes:
            self.records.owe(self.name, step.owes)
        for debt in step.owes:
            self.applied -= self.paying.get(debt, set())
            if not step.tries:  # what may come to nothing is remembered by its own name
                self.owing.setdefault(debt, set()).add(step.key)

    def _forget(self, undone: set[tuple[object, ...]]) -> None:
        """A step has undone these, as a start does a stop: that one is taken once more is no lie."""
        again = undone - self.forgotten
        self.applied -= again
        self.round -= again
        self.forgotten |= again

    def _after(self, step: Step, before: File | None) -> None:
        self.round.add(step.key)
        self.lines.append(Done(step.action, step.disruption, not self.host.predicted))
        if step.pays:
            self.records.settle(self.name, step.pays)
        for debt in step.pays:
            self.paying.setdefault(debt, set()).add(step.key)
            if not self.host.predicted:
                self._forget(self.owing.get(debt, set()) - {step.key})
        if step.kind in ("write", "remove"):
            filed = self.filed.setdefault(step.path, set())
            self._forget(filed - {step.key})
            filed.add(step.key)
        after = shown(self.host, step)
        if step.tries and not self.host.predicted:
            short = step.kind == "set" and value(after) != step.text
            self.records.tried(self.name, step.tries, value(after) if short else None)
        self.changes.took(step, before, after, self.host.predicted)

    def _settle(self, step: Step) -> None:
        """Give the lane time to show the step's effect."""
        end = self.host.clock() + step.settle
        while self.host.clock() < end and not self._shows(step):
            self.answers.clear()
            self.host.sleep(POLL)

    def _shows(self, step: Step) -> bool:
        try:
            plan = self._look_and_plan()
        except NotReady:
            return False
        waiting = any(wait.lane == step.lane and wait.reason == "NotReady" for wait in plan.pending)
        return not waiting and step.key not in {planned.key for planned in plan.steps}

    def _fail(self, step: Step, fault: Fault) -> None:
        self.lines.append(Done(step.action, step.disruption, False))
        retryable = fault.retryable if isinstance(fault, StepFailed) else False
        if isinstance(fault, StepFailed) and fault.declined:
            self.declined.add(step.lane)
        self.ended[step.lane] = Failure("StepFailed", self.goal.given.masked(fault.message), retryable)

    # -- the end

    def _refused(self, message: str) -> Failure:
        """A refusal found after a step was applied is a failed step: something was written."""
        done = bool(self.applied or self.round) and not self.host.predicted
        return Failure("StepFailed" if done else "Refused", message, False)

    def _remember(self) -> None:
        """Keep what the next pass and the reboot need; for units that differed in nothing too.

        That a unit was removed is said last: a pass that dies before is made again, one that dies after is not."""
        owed = tuple(self.records.past(self.name).owed)
        # A pass died between a follow-up and its receipt, and the host shows it done; one that waits is not done.
        if owed and not (self.plan.steps or self.plan.pending):
            self.records.settle(self.name, owed)
        if not self.goal.unit.recorded:
            return
        reasons = [wait.message for wait in self.plan.pending if wait.reason == "RebootRequired"]
        self.records.need_reboot(self.name, "; ".join(reasons))
        left = self._failed() or self.held or len(reasons) < len(self.plan.pending)
        if self.goal.settings is not None or not left:  # a removal that failed or waits is tried again
            self.records.apply(self.name, self.goal.settings)

    def _report(self) -> Outcome:
        failures = [failure for failure in self.ended.values() if failure is not None]
        failure = self.failure or joined(failures)
        failed = self._failed() - {""}
        pending = (*self.waits, *(wait for wait in self.plan.pending if wait.lane not in failed))
        pending += tuple(self.held.values())
        notes = (*self.plan.notes, *self.records.notes)
        if self.host.predicted:  # nothing waits for it yet
            notes += tuple(need.message for need in self.needs.values())
        else:
            pending += tuple(self.needs.values())
        outcome = Outcome(
            unit=self.name,
            changed=self.changes.moved(self.plan.steps) or self._unknown(),
            state="converged",
            pending=pending,
            conditions=self.plan.conditions,
            steps=tuple(self.lines),
            notes=notes,
            diff=tuple(self.changes.diff),
            failure=failure,
            found=self.plan.found,
            needs=tuple(self.needs),
        )
        if failure is not None:
            return outcome._replace(state="progressing" if failure.retryable else "failed")
        return outcome._replace(state="progressing" if pending or outcome.differs else "converged")

    def _unknown(self) -> bool:
        """Whether a prediction has a line that is not known yet: it may be a change."""
        return self.host.predicted and any(line.later for line in self.lines)
