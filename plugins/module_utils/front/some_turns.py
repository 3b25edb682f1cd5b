# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The turns of some units of a host, and what the others would come to after them."""

from __future__ import annotations

from ..core.errors import Fault
from ..core.predict import PredictedHost
from ..core.records import Records
from .result import failed
from .turns import NOTHING, take_turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..core.host import Host
    from ..core.outcome import Outcome
    from ..core.secret import Given
    from ..plan.section import Turn
    from .turns import Catalog


def take_some(
    turns: Sequence[Turn],
    only: Collection[str],
    catalog: Catalog,
    host: Host,
    records: Records,
    max_disruption: str,
    given: Given = NOTHING,
) -> dict[str, Outcome]:
    """Converge the units that `only` names, then plan the others over the host as these leave it.

    The others change nothing, and say what they would do. Of one that has nothing to do the records say what they say
    after a turn of its own: that it is applied, and whether it waits for a reboot.
    """
    mine = [turn for turn in turns if turn.unit in only]
    others = [turn for turn in turns if turn.unit not in only]
    outcomes = take_turns(mine, catalog, host, records, max_disruption, given)
    predicted = host if host.predicted else PredictedHost(host)
    planned = take_turns(others, catalog, predicted, Records(predicted), max_disruption, given)
    for turn in others:
        outcomes[turn.unit] = _remembered(turn, planned[turn.unit]._replace(changed=False, diff=()), records)
    return outcomes


def _remembered(turn: Turn, seen: Outcome, records: Records) -> Outcome:
    if seen.failure is None and not seen.steps:
        try:
            reasons = [wait.message for wait in seen.pending if wait.reason == "RebootRequired"]
            if not turn.leaves or len(reasons) == len(seen.pending):  # a removal that waits is tried again
                records.apply(turn.unit, None if turn.leaves else turn.settings)
                records.ask_unit(turn.unit, None if turn.leaves else turn.settings)
            records.need_reboot(turn.unit, "; ".join(reasons))
        except Fault as fault:
            return failed(turn.unit, fault)
    return seen
