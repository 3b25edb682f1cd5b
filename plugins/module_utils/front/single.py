# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One unit by itself, as its own module and the helper ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Fault
from ..core.outcome import Outcome
from ..core.plan import Unit
from ..core.runner import Goal, converge
from ..core.secret import Given
from .opening import asks_helper, opened
from .result import failed, render


class Asked(NamedTuple):
    """What is asked of one unit: its wire settings, None to remove it; {} with a signed spec, to take them from it."""

    settings: Mapping[str, Any] | None
    signed_spec: Mapping[str, Any] | None = None
    max_disruption: str = "gpu"
    given: Given = Given()


def module_result(unit: Unit, params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """The result of the unit's own module, by its options, complete and validated. Never raises a Fault."""
    if params["state"] == "gathered":
        return gathered(unit)
    from ..plan.wire_form import wire_settings  # here, since the helper is asked in wire form
    from .given import to_unit

    settings = None if params["state"] == "absent" else wire_settings(unit, params)
    asked = Asked(settings, params["signed_spec"], params["max_disruption"], to_unit(params))
    return unit_result(unit, asked, check_mode)


def unit_result(unit: Unit, asked: Asked, check_mode: bool) -> dict[str, Any]:
    """The unit's result keys after one pass, or in check mode as a pass would leave them. Never raises a Fault."""
    try:
        if asks_helper():
            from .through_helper import unit_by_helper

            return unit_by_helper(unit.name, asked, check_mode)
        with opened(check_mode, unit.name) as (host, records):
            from .trust import agreed

            signed = agreed(host, asked.signed_spec, lambda intent: (_signed(unit.name, asked, intent),))
            settings = asked.settings if signed is None else signed[0]
            if not host.predicted:
                from .asked import kept, of_one

                of_one(unit, asked.max_disruption, records)
                unit = kept(unit, settings, records)
            outcome = converge(Goal(unit, settings, asked.given), host, records, asked.max_disruption)
    except Fault as fault:
        outcome = failed(unit.name, fault)
    return render(outcome)


def _signed(unit: str, asked: Asked, intent: Any) -> Mapping[str, Any] | None:
    """The settings of the signed spec, None to remove the unit; raises Refused where other ones are asked for."""
    from ..plan.agreement import of_node, of_unit

    of_node(intent.node_id, asked.given.node_id)
    return of_unit(intent.host, unit, asked.settings)


def gathered(unit: Unit) -> dict[str, Any]:
    """The result of `state: gathered`: what the host is now, in the form of the unit's options; changes nothing."""
    from ..core.host import Host

    if unit.gather is None:
        raise ValueError(f"{unit.name} has no state gathered")
    try:
        seen = unit.gather(Host())
    except Fault as fault:
        return render(failed(unit.name, fault))
    state = "progressing" if seen.pending else "converged"
    return render(Outcome(unit.name, False, state, seen.pending, (), (), seen.notes, (), None, seen.found))
