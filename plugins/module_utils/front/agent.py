# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`bcd agent`: a host kept as it was last asked to be, at boot and every ten minutes, with no controller there.

What is kept is root's own copy: where a signature is demanded the last signed spec that root accepted, verified again
on each pass, else what the last passes were asked (front.asked). Nothing but that is applied, by the same runner, under
the same lock, and up to the disruption that was allowed then. A reboot is never one of its steps.
"""

from __future__ import annotations

import sys
from _signal import SIGTERM, signal  # type: ignore[import-not-found]  # to give signals names costs as much as a start

from ..core.errors import Fault, Refused, StepFailed
from ..core.lock import Held
from ..core.outcome import DISRUPTIONS, our_fault
from ..core.records import Records
from ..look.config import OUTSIDE, pinned, says_nothing
from ..plan import section
from .exit_status import CONVERGED, FAILED, PROGRESSING
from .opening import opened
from .options import DEVICES, HIGHEST, HOST
from .repairs import AGENT, Repair, remember
from .result import render, valid
from .section import ASKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Callable, NamedTuple

    from ..core import host as machine
    from ..core.outcome import Outcome

    Say = Callable[[str], None]
else:
    from ..core.named import NamedTuple

WAITS = ("Busy", "RebootRequired", "HeldBack")  # pending reasons that no pass of ours can end


class Kept(NamedTuple):
    """What is to be applied again: the options of host_section and of cdi_holds, None for a part that is not kept.

    `why` says where both come from, or why there is neither.
    """

    host: Mapping[str, Any] | None
    devices: Mapping[str, Any] | None
    why: str


class End(NamedTuple):
    """How the pass over one part ended: its exit status, its section's state and message, and what it repaired."""

    status: int
    state: str
    message: str
    repairs: tuple[Repair, ...] = ()


# -- root's copy


def sections(host: machine.Host) -> Kept:
    """Root's copy of what this host is to be; raises Refused or StepFailed where it cannot be made out.

    A signed spec is only read here: the pass that is given it verifies it, as any pass does.
    """
    records = Records(host)
    known = records.asked()
    memory = _demanded(host)
    if memory is None:
        units = known.get("units", records.applied() or None)
        held = known.get("devices", {}).get("assignments")
        why = "this host was not asked anything yet" if units is None and held is None else "what this host was asked"
        return Kept(
            None if units is None else _of_host({"units": units}, known),
            None if held is None else _of_devices({}, known),
            why,
        )
    if memory.envelope is None:
        return Kept(None, None, "this host takes a signed spec alone, and has not accepted one yet")
    from ..intent.body import desired_state
    from ..intent.envelope import envelope

    spec = desired_state(envelope(memory.envelope).body)
    signed = {"signed_spec": memory.envelope, "generation": None}
    told = spec.node_id if known.get("host", {}).get("node_id") else None  # a host that is enrolled anew has another
    return Kept(
        None if spec.host is None else _of_host({**signed, "node_id": told}, known),
        None if spec.devices is None else _of_devices({**signed, "assignments": None, "node_id": None}, known),
        f"the signed spec of generation {spec.generation}",
    )


def _demanded(host: machine.Host) -> Any:
    """Root's memory of signed specs where one is demanded (see intent.memory); None where none is."""
    root = None if says_nothing(host) else pinned(host)
    if not root:
        return None
    from ..intent.acceptance import demand
    from ..intent.memory import MEMORY, RECORD, parse
    from ..look.config import root_text

    memory = parse(root_text(host, MEMORY))
    return memory if demand(root, root_text(host, RECORD), memory) else None


def _of_host(spec: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of host_section. The disruption is the lowest that was allowed: of the whole host, or of a unit."""
    beside = _only(known.get("host", {}), ASKED)
    allowed = [beside["max_disruption"], *known.get("limits", {}).values()]
    return {**HOST, **beside, **spec, "max_disruption": _lowest(allowed), "unattended": True}


def _of_devices(spec: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of cdi_holds."""
    from .asked import KEPT_DEVICES

    beside = _only(known.get("devices", {}), KEPT_DEVICES)
    return {**DEVICES, **beside, **spec, "unattended": True}


def _only(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: options.get(name) for name in names}


def _lowest(allowed: Iterable[Any]) -> str:
    """The lowest of these disruptions; what was not said is the highest that there is, what is none allows nothing."""
    places = [DISRUPTIONS.index(name) if name in DISRUPTIONS else 0 for name in allowed if name is not None]
    return DISRUPTIONS[min([*places, DISRUPTIONS.index(HIGHEST)])]


# -- a pass


def run(say: Say | None = None) -> int:
    """One pass over what is kept, and its exit status: the program's word `agent`, which systemd runs.

    `say` gets a line for each repair, and how each part ended: the journal's. A pass that has the lock for long does
    the work; many that have it for a moment, such as requests of an account that means harm, must not end this one.
    """
    told = _print if say is None else say
    try:
        with _Unbroken(), opened(False, "bcd agent") as (host, records):
            return keep(host, records, told)
    except Held as fault:
        told(f"left to the pass that runs now: {fault.message}")
        return CONVERGED
    except Refused as fault:
        told(fault.message)
        return CONVERGED if fault.message == OUTSIDE else FAILED
    except StepFailed as fault:
        told(fault.message)
        return PROGRESSING if fault.retryable else FAILED


class _Unbroken:
    """Lets a stop wait for the end of the pass: a package manager that is killed leaves a broken database."""

    def __enter__(self) -> None:
        self._before = signal(SIGTERM, lambda _number, _frame: None)  # programs that are run have their own again

    def __exit__(self, *_fault: object) -> None:
        signal(SIGTERM, self._before)


def keep(host: machine.Host, records: Records, say: Say) -> int:
    """Apply both parts again, the host's first, whatever becomes of it; the exit status of that which is worse off."""
    try:
        kept = sections(host)
    except Fault as fault:
        unclear = _of_fault(fault)
        _tell(host, "host", unclear, say)
        return unclear.status
    if kept.host is None and kept.devices is None:
        say(f"nothing to keep: {kept.why}")
    ends = []
    for part, options, apply in (("host", kept.host, _host), ("devices", kept.devices, _devices)):
        end = None if options is None else _guarded(apply, options, host, records)
        _tell(host, part, end, say)
        ends += [] if end is None else [end.status]
    return next((status for status in (FAILED, PROGRESSING) if status in ends), CONVERGED)


def _guarded(apply: Callable[..., End], options: Mapping[str, Any], host: machine.Host, records: Records) -> End:
    try:
        return apply(options, host, records)
    except Fault as fault:
        return _of_fault(fault)
    except Exception as fault:  # noqa: BLE001 - a fault of ours in one part must not end the other
        return End(FAILED, section.FAILED, our_fault(fault))


def _of_fault(fault: Fault) -> End:
    if isinstance(fault, StepFailed) and fault.retryable:
        return End(PROGRESSING, section.PROGRESSING, fault.message)
    return End(FAILED, section.FAILED, fault.message)


def _host(options: Mapping[str, Any], host: machine.Host, records: Records) -> End:
    from . import staged
    from .section import converge_section

    ended = converge_section(staged.with_token(host, options), host, records)
    if ended.fault is not None:
        return _of_fault(ended.fault)
    results = [render(outcome) for outcome in ended.outcomes]
    staged.forget(host, results)
    return End(_status(ended.outcomes, results), ended.state, section.message_of(results), _repairs(results))


def _devices(options: Mapping[str, Any], host: machine.Host, records: Records) -> End:
    from .holds import converge_holds, intended, report

    ended = converge_holds(intended(options, host), host, records)
    result = report(ended)
    state = result["section"]["state"]
    status = FAILED if state == section.FAILED else _status([ended.outcome], [result])
    return End(status, state, result["section"]["message"], _repairs([result]))


def _status(outcomes: Iterable[Outcome], results: Iterable[Mapping[str, Any]]) -> int:
    """FAILED where a unit can be helped by no pass, so that it is seen; PROGRESSING where the next one may help."""
    found = CONVERGED
    for outcome, result in zip(outcomes, results):
        if result["state"] == "failed":
            return FAILED
        if _is_worth_another(outcome, result):
            found = PROGRESSING
    return found


def _is_worth_another(outcome: Outcome, result: Mapping[str, Any]) -> bool:
    """Whether a pass that follows soon may come further. One for want of a secret comes no further without it."""
    if "reason" in result:
        return bool(result["retryable"])
    if outcome.needs or result["state"] == "converged":
        return False
    waits = [wait["reason"] for wait in result["pending"]]
    return any(reason not in WAITS for reason in waits) or not waits


def _repairs(results: Iterable[Mapping[str, Any]]) -> tuple[Repair, ...]:
    """What was done in units that it changed: a try that came to nothing, as in each pass, is no repair."""
    changed = (result for result in results if result["changed"])
    return tuple(
        Repair(result["unit"], step["action"]) for result in changed for step in result["steps"] if step["done"]
    )


# -- what is told


def _tell(host: machine.Host, part: str, end: End | None, say: Say) -> None:
    """Record how the part ended, and say it; None: it is not kept."""
    try:
        remember(host, part, end.state if end else "", end.message if end else "", end.repairs if end else ())
    except (Fault, OSError) as fault:
        say(f"cannot write {AGENT}, so that no run will tell of this pass: {getattr(fault, 'strerror', None) or fault}")
    if end is None:
        return
    for repair in end.repairs:
        say(f"{repair.unit}: {repair.action}")
    say(f"{part} {end.state}" + (f": {end.message}" if end.message else ""))


def _print(line: str) -> None:
    """One line, whatever is in it; a journal that is gone is no reason to leave a pass half done."""
    from .cli import put

    put(sys.stdout, " ".join(str(valid(line)).split()) + "\n")
