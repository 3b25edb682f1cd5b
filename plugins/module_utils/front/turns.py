# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every unit's turn in one pass, and another turn for those that a later one may have changed, until it is quiet."""

from __future__ import annotations

from ..core.errors import Refused, StepFailed
from ..core.outcome import Done, Outcome
from ..core.secret import Given
from ..plan.section import Turn
from .result import failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Callable

    from ..core.host import Host
    from ..core.plan import Unit
    from ..core.records import Records

    Catalog = Callable[[str], Unit]  # by wire name; raises Refused

ROUNDS = 5  # turns of one unit in one pass
NOTHING = Given()


def take_turns(
    turns: Sequence[Turn],
    catalog: Catalog,
    host: Host,
    records: Records,
    max_disruption: str,
    given: Given = NOTHING,
) -> dict[str, Outcome]:
    """Converge the units in this order, whatever becomes of the others; the outcome of each by its name.

    A unit whose turn came before another changed the host is looked at again afterwards, unless it failed: that is
    for the next pass. Where nothing changes, each unit is looked at once.
    """
    outcomes: dict[str, Outcome] = {}
    due = {turn.unit for turn in turns}
    moved: set[str] = set()
    own = None
    if host.predicted:
        from .own_clauses import OwnClauses

        own = OwnClauses(host)
    for _round in range(ROUNDS):
        moved = set()
        for turn in turns:
            if turn.unit not in due:
                continue
            due.discard(turn.unit)
            outcome = _turn(turn, catalog, host, records, max_disruption, given)
            earlier = outcomes.get(turn.unit)
            if own is not None:
                outcome = own.left_out(outcome, earlier)
            if _moved(outcome, earlier, host.predicted):
                moved.add(turn.unit)
                due |= {unit for unit, seen in outcomes.items() if unit != turn.unit and seen.failure is None}
            outcomes[turn.unit] = outcome if earlier is None else _joined(earlier, outcome, host.predicted)
        if not due:
            return outcomes
    for unit in moved:
        outcomes[unit] = _restless(outcomes[unit], sorted(moved | due))
    return outcomes


def _turn(turn: Turn, catalog: Catalog, host: Host, records: Records, max_disruption: str, given: Given) -> Outcome:
    if host.recall is None:
        return _made(turn, catalog, host, records, max_disruption, given)
    found: Outcome = host.recall.turn(
        turn, host, records, given, lambda: _made(turn, catalog, host, records, max_disruption, given)
    )
    return found


def _made(turn: Turn, catalog: Catalog, host: Host, records: Records, max_disruption: str, given: Given) -> Outcome:
    """The outcome of a turn that is made in full."""
    try:
        unit = catalog(turn.unit)
        if isinstance(turn.settings, Refused):
            raise turn.settings
    except Refused as fault:
        return failed(turn.unit, fault)
    from ..core.runner import Goal, converge

    settings = None if turn.leaves else turn.settings
    if not (host.predicted or records.is_asked(turn.unit, settings)):
        from .asked import kept

        unit = kept(unit, settings, records)
    return converge(Goal(unit, settings, given), host, records, max_disruption)


def _moved(outcome: Outcome, earlier: Outcome | None, predicted: bool) -> bool:
    """Whether the turn changed the host; a prediction says its unknown lines again, which is no change."""
    if earlier is None or not predicted:
        return outcome.changed
    return outcome.changed and any(line not in earlier.steps for line in outcome.steps)


def _joined(earlier: Outcome, outcome: Outcome, predicted: bool) -> Outcome:
    """Two turns of a unit as one: all that was done, and what the last turn says of the rest."""
    kept = [line for line in earlier.steps if _stands(line, predicted) or line in outcome.steps]
    steps = (*kept, *(line for line in outcome.steps if line.done or line not in kept))
    joined = outcome._replace(
        changed=earlier.changed or outcome.changed,
        steps=steps,
        diff=(*earlier.diff, *outcome.diff),
    )
    if predicted and earlier.needs:  # what a step wanted that was predicted before
        joined = joined._replace(
            needs=tuple(dict.fromkeys((*earlier.needs, *outcome.needs))),
            notes=tuple(dict.fromkeys((*earlier.notes, *outcome.notes))),
        )
    return joined._replace(state="progressing") if joined.state == "converged" and joined.differs else joined


def _stands(line: Done, predicted: bool) -> bool:
    """Whether an earlier turn's line still holds: it was done, or would have been by the later turn's host."""
    return line.done or (predicted and not line.later)


def _restless(outcome: Outcome, rivals: Sequence[str]) -> Outcome:
    others = ", ".join(unit for unit in rivals if unit != outcome.unit)
    fault = StepFailed(
        f"{outcome.unit}: not quiet after {ROUNDS} turns: it and {others} change what the other has set: "
        "compare their settings"
    )
    why = failed(outcome.unit, fault)
    return outcome._replace(state=why.state, failure=why.failure)
