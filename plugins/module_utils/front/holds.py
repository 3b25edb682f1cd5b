# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is held on a host, brought to the section of its devices: the module cdi_holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Fault, NotKnownYet, StepFailed
from ..core.host import Host
from ..core.outcome import Outcome
from ..core.plan import Past, Plan, Unit
from ..core.records import Records
from ..core.runner import Goal, converge
from ..core.state import AGENT, STATE, parse
from ..core.state import render as record
from ..plan import section
from ..plan.assignment import UNIT as NAME
from ..plan.devices_seen import BOUND, Event, Now
from .result import failed, render
from .signing import Signing, seen

OBSERVED = f"{STATE}/devices.json"  # the last generation that the section came to
AS_ROOT = "this account is not root, and holds are root's: set become: true"


class Ended(NamedTuple):
    """How a pass ended: its outcome, the first and the last look (None: there was none), and what the front adds.

    `partial`: events were acknowledged, and no more. `broken`: the host could not be worked on at all. `root` false:
    nothing could be written. `signed`: reports were signed; `unsigned` says what kept others from it.
    """

    outcome: Outcome
    partial: bool = False
    broken: bool = False
    first: Now | None = None
    last: Now | None = None
    events: tuple[Event, ...] = ()
    observed: int | None = None
    root: bool = True
    signed: bool = False
    unsigned: str = ""
    agent: Mapping[str, Any] | None = None  # what bcd agent has to tell (see front.repairs)


def run_holds(argument_spec: dict[str, Any], rules: dict[str, Any]) -> None:
    """Converge the section of devices by the module's options, and exit; `rules` are those between options."""
    from .module import leave, start  # Ansible: the pass below is made without it too

    module = start(argument_spec, **rules)
    leave(module, holds_result(module.params, module.check_mode))


def holds_result(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """The result of one pass, or in check mode of one that would be made."""
    from .opening import asks_helper, opened

    root = Host().uid() == 0
    try:
        if asks_helper():
            from .through_helper import holds_by_helper

            return holds_by_helper(params, check_mode)
        with opened(check_mode or not root, "cdi_holds") as (host, records):
            ended = converge_holds(intended(params, host), host, records, root or check_mode)
            if root and not ended.partial and host.exists(AGENT):
                from .repairs import heard

                ended = ended._replace(agent=heard(host, not params.get("unattended")))
    except Fault as fault:
        ended = Ended(failed(NAME, fault), broken=True)
    return report(ended)


def intended(params: Mapping[str, Any], host: Host) -> Mapping[str, Any]:
    """The options with what is signed in their place; raises Refused.

    To acknowledge events alone takes no signature: it holds, releases and changes nothing.
    """
    if params["signed_spec"] is None and params["assignments"] is None:
        return params
    from .trust import agreed

    signed = agreed(host, params["signed_spec"], lambda intent: _of_spec(params, intent))
    return params if signed is None else signed


def _of_spec(params: Mapping[str, Any], intent: Any) -> Mapping[str, Any]:
    from ..plan.agreement import of_devices, of_generation, of_node

    node_id = of_node(intent.node_id, params["node_id"])
    assignments = of_devices(intent.devices, params["assignments"])
    generation = of_generation(intent.generation, params["generation"])
    return {**params, "assignments": assignments, "generation": generation, "node_id": node_id}


def converge_holds(params: Mapping[str, Any], host: Host, records: Records, root: bool = True) -> Ended:
    """One pass; without `assignments` it only drops what is acknowledged.

    `root` false: over a predicted host, to say what another account cannot do. Raises Refused for a signing key that
    is none, before anything is written.
    """
    from ..plan.wire_form import wire_settings

    unit = _unit(params)
    if not (host.predicted or params["assignments"] is None):
        from .asked import kept_devices

        unit = kept_devices(unit, params, records)
    settings = wire_settings(unit, params)
    signing = Signing(params, host)
    signing.prepare(settings)
    events = seen(host) if host.predicted else ()  # of the real journal
    looks: list[Now] = []
    plans: list[Plan] = []
    outcome = converge(Goal(_watched(unit, looks, plans), settings), host, records, params["max_disruption"])
    outcome = _of_all(outcome, plans)
    if not host.predicted:
        if not _is_refused(outcome):
            signing.sign()
        events = seen(host)
    ended = Ended(
        outcome,
        partial=params["assignments"] is None,
        first=looks[0] if looks else None,
        last=looks[-1] if looks else None,
        events=signing.allowed(events) if root else _of_nobody(outcome, params["generation"]),
        root=root,
        signed=signing.done,
        unsigned=signing.fault,
    )
    if ended.partial:
        return ended
    generation = None if _is_refused(outcome) else params["generation"]  # of bad options nothing is remembered
    return ended._replace(observed=_observe(host, generation, state_of(ended)))


def _unit(params: Mapping[str, Any]) -> Unit:
    if params["assignments"] is None:
        from ..units.acknowledgement import UNIT as ACKNOWLEDGEMENT

        return ACKNOWLEDGEMENT
    from ..units.devices import UNIT

    return UNIT


def _watched(unit: Unit, looks: list[Now], plans: list[Plan]) -> Unit:
    """The unit, with its first and its last look kept, whose difference is what a run did, and with every plan."""

    def look(host: Host, settings: Any, past: Past) -> Any:
        now = unit.look(host, settings, past)
        if isinstance(now, Now):
            looks[1:] = [now]
        return now

    def plan(settings: Any, now: Any, past: Past) -> Plan:
        plans.append(unit.plan(settings, now, past))
        return plans[-1]

    return unit._replace(look=look, plan=plan)


def _of_all(outcome: Outcome, plans: list[Plan]) -> Outcome:
    """The outcome, with what the plans before the last said: notes of a bind, and why an assignment failed.

    That is what its event says. Later plans see what was bound behind it, and may find another reason.
    """
    notes = tuple(dict.fromkeys((*(note for plan in plans for note in plan.notes), *outcome.notes)))
    why: dict[str, dict[str, str]] = {}
    for plan in plans:
        for failure in plan.found.get("failures", ()):
            why.setdefault(failure["allocation_id"], failure)
    failures = [why.get(failure["allocation_id"], failure) for failure in _failures(outcome)]
    found = {**outcome.found, "failures": failures} if failures else outcome.found
    return outcome._replace(notes=notes, found=found)


def _of_nobody(outcome: Outcome, generation: int | None) -> tuple[Event, ...]:
    """The failures' events where no journal can be written: the same ids each time, so that a reader knows them."""
    from ..plan.events import failed as event

    return tuple(
        event(failure["allocation_id"], generation or 0, failure["reason"], failure["message"])
        for failure in _failures(outcome)
    )


# -- the section


def state_of(ended: Ended) -> str:
    """PROGRESSING while a retry may help, else FAILED where something is wrong, such as an assignment that failed."""
    failure = ended.outcome.failure
    if ended.outcome.pending or ended.unsigned or (failure is not None and failure.retryable):
        return section.PROGRESSING
    if failure is not None or _failures(ended.outcome):
        return section.FAILED
    return section.PROGRESSING if ended.outcome.differs else section.CONVERGED


def _is_refused(outcome: Outcome) -> bool:
    return outcome.failure is not None and outcome.failure.reason == "Refused"


def _failures(outcome: Outcome) -> list[dict[str, str]]:
    return list(outcome.found.get("failures", ()))


def _message(ended: Ended) -> str:
    """Every failure by its allocation, then what else is not converged; empty when all is."""
    texts = [f"{failure['allocation_id']}: {failure['message']}" for failure in _failures(ended.outcome)]
    if ended.outcome.failure is not None:
        texts.append(ended.outcome.failure.message)
    texts += [ended.unsigned] if ended.unsigned else []
    texts += [wait.message for wait in ended.outcome.pending]
    left = [step.action for step in ended.outcome.steps if not step.done]
    if left and not texts:
        texts = [f"still to do: {left[0]}" + (f", and {len(left) - 1} more" if left[1:] else "")]
    return "; ".join(dict.fromkeys(texts))


def _observe(host: Host, generation: int | None, state: str) -> int | None:
    """The generation that the section has come to: this one when it ended, else the last that did."""
    seen = _observed(host)
    if generation is None or state == section.PROGRESSING or generation == seen or host.predicted:
        return seen
    try:
        host.write(OBSERVED, record({"observed_generation": generation}), 0o600)
    except (Fault, OSError):  # it cannot be kept: the next pass comes to it again
        return seen
    return generation


def _observed(host: Host) -> int | None:
    try:
        text = host.read(OBSERVED)
        found = None if text is None else parse(OBSERVED, text, lambda _found: True).get("observed_generation")
    except (StepFailed, NotKnownYet):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


# -- the result


def report(ended: Ended) -> dict[str, Any]:
    """The module's result. Bad options, and a host that cannot be worked on, fail the task: they alone have `msg`."""
    outcome = ended.outcome
    result = render(outcome._replace(found={}))
    if not (ended.broken or _is_refused(outcome)):
        result.pop("msg", None)
    if ended.unsigned:
        result.update(reason="StepFailed", retryable=True)
    if not ended.root:
        result.update(changed=False, diff=[], notes=[*result["notes"], AS_ROOT])
    state = state_of(ended)
    return {
        **result,
        "changed": result["changed"] or ended.signed,
        "state": state.lower(),
        # Root's own records say nothing that a person compares.
        "diff": [_shown(entry) for entry in result["diff"] if not entry["after_header"].startswith(STATE + "/")],
        "events": [_event(event) for event in ended.events],
        **({} if ended.agent is None else {"agent": ended.agent}),
        **({} if ended.partial else _section(ended, state, result["conditions"])),
    }


def _section(ended: Ended, state: str, conditions: list[dict[str, str]]) -> dict[str, Any]:
    return {
        **_moved(ended),
        "holds": _holds(ended),
        "failures": _failures(ended.outcome),
        "section": {
            "state": state,
            "message": _message(ended),
            "observed_generation": ended.observed,
            "conditions": conditions,
        },
    }


def _holds(ended: Ended) -> list[dict[str, Any]]:
    """Who holds what: after the run, in check mode before it."""
    done = any(step.done for step in ended.outcome.steps)
    look = ended.last if done else ended.first
    return [
        {
            "allocation_id": held.allocation,
            "binding": None if held.fault else held.binding,
            "devices": [device.id for device in held.devices],
            "generation": None if held.fault else held.generation,
        }
        for held in (() if look is None else look.held.values())
    ]


def _shown(entry: Mapping[str, str]) -> dict[str, str]:
    """An entry of the diff; of what an assignment adds to an env file the keys alone, whoever may read the file."""
    from ..plan.hold_spec import ENV_FILES

    if not entry["after_header"].startswith(ENV_FILES + "/"):
        return dict(entry)
    return {**entry, **{key: "".join(map(_shown_line, entry[key].splitlines(True))) for key in ("before", "after")}}


def _shown_line(line: str) -> str:
    from ..plan.assignment import OUR_KEYS

    key, equals, _value = line.partition("=")
    return line if key in OUR_KEYS or not equals else f"{key}=(not shown)\n"


def _event(event: Event) -> dict[str, str]:
    told = {"id": event.id, "type": event.type, "body": event.body}
    return {**told, "signature": event.signature, "key_id": event.key_id} if event.signature else told


def _moved(ended: Ended) -> dict[str, list[str]]:
    """Which allocations the run bound, kept and released, and whose release still waits.

    A bind that an earlier pass began counts for the pass that ends it; so does a release.
    """
    first, last = ended.first, ended.last if ended.root else ended.first
    if first is None or last is None:
        return {"bound": [], "kept": [], "released": [], "releasing": []}
    before, after = ({name for name, held in look.held.items() if held.state == BOUND} for look in (first, last))
    reported = {event.id for event in first.events}
    told = {
        event.allocation for event in last.events if event.type == "AllocationReleased" and event.id not in reported
    }
    waiting = {release.allocation for release in last.releases}
    gone = {name for name in first.held if name not in last.held} - waiting
    return {
        "bound": sorted(after - before),
        "kept": sorted(after & before),
        "released": sorted(gone | told),
        "releasing": sorted(waiting),
    }
