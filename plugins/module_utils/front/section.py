# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole host in one process: the modules host_plan and host_section."""

from __future__ import annotations

from ..core.errors import Fault, Refused
from ..core.host import Host
from ..core.outcome import Outcome
from ..core.records import Records
from ..core.secret import Given
from ..core.state import AGENT
from ..plan import section
from .result import failed, render
from .turns import NOTHING, take_turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any, NamedTuple
else:
    from ..core.named import NamedTuple

HOSTNAME = "/proc/sys/kernel/hostname"
ASKED = ("generation", "max_disruption", "node_id", "site")  # what is remembered beside the units


class Ended(NamedTuple):
    """How a pass ended: an outcome for each unit, in the order of their turns; or the fault that came before any."""

    outcomes: tuple[Outcome, ...]
    fault: Fault | None
    state: str
    label: str
    observed: int | None
    inventory: dict[str, Any] | None
    agent: dict[str, Any] | None = None  # what bcd agent has to tell (see front.repairs)


def run_section(argument_spec: dict[str, Any], rules: dict[str, Any], plans: bool = False) -> None:
    """Converge the whole section by the module's options, and exit; `plans`: only say what that would take.

    `rules` are those between options.
    """
    from .module import leave, start  # Ansible: the pass below is made without it too

    module = start(argument_spec, **rules)
    leave(module, section_result(module.params, module.check_mode, plans))


def section_result(params: Mapping[str, Any], check_mode: bool, plans: bool = False) -> dict[str, Any]:
    """The result of one pass, or in check mode and where it only `plans` of one that would be made."""
    from .opening import asks_helper, opened

    predicted = plans or check_mode
    try:
        if asks_helper():
            from .through_helper import section_by_helper

            return section_by_helper(params, check_mode, plans)
        with opened(predicted, "host_plan" if plans else "host_section") as (host, records):
            ended = heard(converge_section(params, host, records), params, host)
    except Fault as fault:
        from ..core.predict import PredictedHost

        host = PredictedHost(Host())
        ended = _ended((), fault, params, host, Records(host))
    return report(
        ended,
        params["fail_on"],
        params["only"],
        may_change=check_mode or not plans,
        for_secrets=params["fail_on_secrets"] and not predicted,
    )


def converge_section(params: Mapping[str, Any], host: Host, records: Records) -> Ended:
    """One pass over every unit that the section names, or that we applied and it no longer names."""
    from ..units import catalog

    outcomes: dict[str, Outcome] = {}
    turns: tuple[section.Turn, ...] = ()
    fault = None
    trusted = False
    try:
        signed = _signed(params, host)
        trusted = True
        params, named = (params, _named(params)) if signed is None else signed
        given = _given(params)
        is_asked = not (host.predicted or params.get("unattended"))
        if is_asked:
            _remember(params, records)
        turns = section.turns(named, {*records.applied(), *(params["known"] or ())})
        if params["only"] is None:
            if is_asked:
                records.ask_only([turn.unit for turn in turns])
            outcomes = take_turns(turns, catalog.unit, host, records, params["max_disruption"], given)
        else:
            from .some_turns import take_some

            section.check_only(params["only"], [turn.unit for turn in turns])
            outcomes = take_some(turns, params["only"], catalog.unit, host, records, params["max_disruption"], given)
    except Fault as seen:
        fault = seen
        if not trusted:  # nothing that it says is kept, nor which generation it is
            params = {**params, "generation": None}
    in_turn = tuple(outcomes[turn.unit] for turn in turns) if fault is None else ()
    return _ended(in_turn, fault, params, host, records)


def heard(ended: Ended, params: Mapping[str, Any], host: Host) -> Ended:
    """With what bcd agent has to tell. It counts as told where this pass is the run's own and last over the host.

    `unattended` of the options is true for a pass over root's copy, which no run asked for.
    """
    if not host.exists(AGENT):
        return ended
    from .repairs import heard as news

    goes_on = params["fail_on_secrets"] and any(outcome.needs for outcome in ended.outcomes)
    is_last = not (ended.fault or goes_on or params.get("unattended")) and params["only"] is None
    return ended._replace(agent=news(host, is_last))


def _remember(params: Mapping[str, Any], records: Records) -> None:
    """Have the options remembered with what the units are asked (see front.asked); `only` leaves others' limits."""
    limits: dict[str, str] = {}
    if params["only"] is not None:
        from .asked import limits_without

        limits = limits_without(records, params["only"])
    records.options(host={name: params[name] for name in ASKED}, limits=limits)


def _given(params: Mapping[str, Any]) -> Given:
    if not (params["secrets"] or params["node_id"] or params["site"]):
        return NOTHING
    from .given import to_section

    return to_section(params)


def _signed(params: Mapping[str, Any], host: Host) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The options with what is signed in their place, and the section; None where nothing is. Raises Refused."""
    from .trust import agreed

    return agreed(host, params["signed_spec"], lambda intent: _of_spec(params, intent))


def _of_spec(params: Mapping[str, Any], intent: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    from ..plan.agreement import of_generation, of_node, of_section

    of_node(intent.node_id, params["node_id"])
    is_given = params["units"] is not None or params["wire_units"] is not None
    units = of_section(intent.host, _named(params) if is_given else None)
    generation = of_generation(intent.generation, params["generation"])
    return {**params, "units": units, "wire_units": None, "generation": generation}, units


def _named(params: Mapping[str, Any]) -> dict[str, Any]:
    from ..plan import wire

    if params["wire_units"] is not None:
        return dict(wire.from_list(params["wire_units"]))
    if params["units"] is None:
        raise Refused("units is null, which is no section: give the units of the host, {} to clean everything")
    return dict(wire.from_mapping(params["units"]))


def _ended(
    outcomes: tuple[Outcome, ...], fault: Fault | None, params: Mapping[str, Any], host: Host, records: Records
) -> Ended:
    """With what the host itself adds; what a refused section names is each refused, when that is known."""
    if fault is not None:
        names = params["units"] or {entry["unit"] for entry in params["wire_units"] or ()}
        outcomes = tuple(failed(unit, fault) for unit in section.in_order(names))
    state = section.state_of(_judged(outcomes, fault))
    label = params["label"] or (host.read(HOSTNAME) or "").strip() or "localhost"
    observed = _observed(params["generation"], state, records)
    return Ended(outcomes, fault, state, label, observed, _inventory(outcomes, host, records))


def _judged(outcomes: tuple[Outcome, ...], fault: Fault | None) -> list[dict[str, Any]]:
    """The results that decide; a fault before any unit stands for them."""
    return [render(outcome) for outcome in (outcomes if fault is None else (failed("host", fault),))]


def _observed(generation: int | None, state: str, records: Records) -> int | None:
    """The generation that the section has come to: this one when it ended, the last that did while it goes on."""
    try:
        if generation is not None and state != section.PROGRESSING:
            records.observe(generation)
        return records.generation()
    except (Fault, OSError):  # the record cannot be kept: every unit has said so of its own records
        return None


def _inventory(outcomes: tuple[Outcome, ...], host: Host, records: Records) -> dict[str, Any] | None:
    """What the host is now, when the pass changed it."""
    if host.predicted or not any(outcome.changed for outcome in outcomes):
        return None
    from .info import inventory

    return inventory(host, records)


# -- the result


def report(
    ended: Ended,
    fail_on: str,
    only: list[str] | None = None,
    may_change: bool = True,
    for_secrets: bool = False,
) -> dict[str, Any]:
    """The keys of a whole host's result; `msg` names all that is not converged, when `fail_on` makes the task fail.

    `for_secrets` makes it fail where a unit waits for a secret, too.
    A failing result has no `ansible_facts`: Ansible drops the facts of a failed task, and prints all that it returns.
    """
    in_turn = {outcome.unit: render(outcome) for outcome in ended.outcomes}
    results = [in_turn[unit] for unit in section.in_order(in_turn)]
    judged = results if ended.fault is None else _judged(ended.outcomes, ended.fault)
    reasons = section.reboot_reasons(results)
    message = section.message_of(judged) if ended.fault is None else ended.fault.message
    applied = judged if only is None or ended.fault is not None else [one for one in judged if one["unit"] in only]
    needed = _needed(ended.outcomes, {one["unit"] for one in applied})
    status: dict[str, Any] = {
        "changed": may_change and any(result["changed"] for result in results),
        "units": results,
        "unconverged": [result["unit"] for result in results if result["state"] != "converged"],
        "todo": [unit for unit, result in in_turn.items() if section.steps_left(result)],
        "secrets_needed": needed,
        "reboot_required": bool(reasons),
        "section": {
            "state": ended.state,
            "message": message,
            "observed_generation": ended.observed,
            "conditions": section.conditions_of(results),
        },
    }
    more = {"inventory": ended.inventory, "agent": ended.agent}
    status.update({key: value for key, value in more.items() if value is not None})
    told = message if applied is judged else section.message_of(applied)
    if section.fails(applied, fail_on):
        status["msg"] = told
    elif for_secrets and needed:
        status["msg"] = f"this task ends so that the next one can give {', '.join(needed)}, and goes on: {told}"
    return {
        **status,
        "diff": [entry for result in results for entry in result["diff"]],
        **({} if "msg" in status else {"ansible_facts": {"bcd_converge_status": status}}),
        "ansible_stats": {
            "data": {"bcd_converge_reboot_required": {ended.label: reasons}},
            "per_host": False,
            "aggregate": True,
        },
    }


def _needed(outcomes: Iterable[Outcome], units: Collection[str]) -> list[str]:
    """The references of the secrets that these units wait for."""
    return sorted({need for outcome in outcomes if outcome.unit in units for need in outcome.needs})
