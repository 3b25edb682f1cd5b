# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of what became of allocations, kept in a journal on the host until their reader has acknowledged them.

A file each, so that a pass over many allocations costs no more than their number. An event that is in the journal is
never written again with another content: its id says which bind, release or failure it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..core.plan import Past, Plan, Todo
from ..core.state import STATE, parse, render
from ..core.step import fail, remove, write
from .assignment import Section
from .canonical import canonical
from .devices_seen import BINDING, Event, Held, Release

BOUND, RELEASED, FAILED = "AllocationBound", "AllocationReleased", "AllocationFailed"
ATTESTED = (BOUND, RELEASED)  # signed with the node's key
PURPOSE = "attested-report"
EVENTS = f"{STATE}/events"
LANE = "event journal"  # a space: no allocation is called so
TEXTS = ("id", "type", "allocation_id", "body")
LOST = "an event is lost with it: what it told of is seen by `holds` of host_info"


# -- events


def bound(held: Held, section: Section, boot_id: str, parent: str = "") -> Event:
    """The report of a hold whose slice, CDI spec and env file are there; `parent` is its slice's name, "" without."""
    from .hold_spec import device_name, env_path, spec_path

    body: dict[str, Any] = {
        **_attested(BOUND, held, section, boot_id),
        "cdi_devices": [f"bcd.dev/gpu={device_name(device.id)}" for device in held.devices],
        "cdi_spec_path": spec_path(held.allocation),
        "env_file": env_path(held.allocation),
        **({"cgroup_parent": parent} if parent else {}),
    }
    return _event(f"bound-{_of(held)}", body)


def released(held: Held | Release, section: Section, boot_id: str) -> Event:
    """The report that the devices of a hold are free again."""
    return _event(f"released-{_of(held)}", _attested(RELEASED, held, section, boot_id))


def failed(allocation: str, generation: int, reason: str, message: str) -> Event:
    """The report, once for a generation of the section, that an assignment cannot be honoured."""
    body = {
        "type": FAILED,
        "allocation_id": allocation,
        "generation": generation,
        "reason": reason,
        "message": message,
    }
    return _event(f"failed-{allocation}-{generation}", body)


def _of(held: Held | Release) -> str:
    return f"{held.allocation}-{held.generation}-{held.since}"


def _attested(kind: str, held: Held | Release, section: Section, boot_id: str) -> dict[str, Any]:
    return {
        "type": kind,
        "node_id": section.node_id,
        "boot_id": boot_id,
        "allocation_id": held.allocation,
        "generation": held.generation,
        "device_ids": [device.id for device in held.devices],
    }


def _event(name: str, body: Mapping[str, Any]) -> Event:
    text = canonical({key: _readable(value) for key, value in body.items()})
    return Event(name, body["type"], body["allocation_id"], body["generation"], text)


def _readable(value: Any) -> Any:
    """Texts fit for UTF-8: the name of a file may hold any byte."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return [_readable(item) for item in value] if isinstance(value, list) else value


# -- the journal


class Journal:
    """The journal as one look found it, with what a plan adds to it."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = {event.id: event for event in events}
        self._last = max((event.sequence for event in self._events.values()), default=0)
        self._standing: set[str] = set()

    def add(self, todo: Todo, event: Event) -> None:
        """Add, in the lane that is open, the step that journals the event; none when it is there.

        Call it for an event that is there too, as long as what it tells of is being done, or stands: the event is
        remembered until then, acknowledged or not.
        """
        self._standing.add(event.id)
        seen = self._events.get(event.id)
        if seen is None or seen.fault:
            self._last += 1
            numbered = event._replace(sequence=self._last)
            action = f"journal {event.type} of {event.allocation}"
            todo.add(write(path_of(event.id), text_of(numbered), action, mode=0o600))

    def free_time(self, allocation: str, generation: int, time: int) -> int:
        """The first time, from this one on, of which no event of such a hold is journaled: a clock may be set back.

        A hold is told from one of its name before by when it was made.
        """
        while any(f"{kind}-{allocation}-{generation}-{time}" in self._events for kind in ("bound", "released")):
            time += 1
        return time

    def keep(self, event_id: str) -> None:
        """Remember the event of this id, as `add` does, for what no other is journaled for."""
        self._standing.add(event_id)

    def settle(self, todo: Todo, accepted: Collection[str]) -> None:
        """Add the steps that drop the acknowledged events, those of the ids `accepted` among them: after all else.

        An event whose file cannot be made out fails a lane of its own; that its id is acknowledged removes it.
        """
        known = frozenset(accepted)
        for event in self._events.values():
            path = path_of(event.id)
            said = f"{event.type} of {event.allocation}" if event.type else f"the event {event.id}"
            if not event.acknowledged and event.id not in known:
                if event.fault and event.id not in self._standing:
                    todo.add(fail(f"return {said}", event.fault, lane=f"{LANE} {event.id}", retryable=False))
            elif event.id not in self._standing:
                todo.add(remove(path, f"drop {said}, which was acknowledged", lane=LANE))
            elif not (event.acknowledged or event.fault):
                text = text_of(event._replace(acknowledged=True))
                todo.add(write(path, text, f"remember that {said} was acknowledged", mode=0o600, lane=LANE))


class Reported(NamedTuple):
    """What there is to acknowledge: the journal, and of which events what they tell of still goes on."""

    events: tuple[Event, ...] = ()
    unfinished: frozenset[str] = frozenset()  # ids


def goes_on(event: Event, held: Held | None, releasing: bool) -> bool:
    """Whether a pass may still have to know that the event was journaled.

    A bind whose record does not say yet that it is done, a release whose record is still there, a failure that may
    stand: the next pass over the assignments says so. `held` is by the allocation's record, None where there is none.
    """
    if event.type == RELEASED:
        return releasing or (held is not None and (bool(held.fault) or event.id == f"released-{_of(held)}"))
    return event.type != BOUND or (held is not None and (bool(held.fault) or held.state == BINDING))


def acknowledge(accepted: frozenset[str], now: Reported, _past: Past) -> Plan:
    """Drop the events that were accepted, and look at nothing else."""
    todo, journal = Todo(), Journal(now.events)
    for event_id in now.unfinished:
        journal.keep(event_id)
    journal.settle(todo, accepted)
    return todo.plan()


def path_of(event_id: str) -> str:
    """The event's file."""
    return f"{EVENTS}/{event_id}.json"


def text_of(event: Event) -> str:
    """The text of the event's file, which its owner alone reads."""
    record: dict[str, Any] = {
        "id": event.id,
        "sequence": event.sequence,
        "type": event.type,
        "allocation_id": event.allocation,
        "generation": event.generation,
        "body": event.body,
    }
    if event.signature:
        record.update(signature=event.signature, key_id=event.key_id)
    if event.acknowledged:
        record["acknowledged"] = True
    return render(record)


def parse_event(path: str, text: str) -> Event:
    """The event in the text of its file; raises StepFailed, not retryable, for a file that is damaged."""
    found = parse(path, text, _is_whole, LOST)
    return Event(
        found["id"],
        found["type"],
        found["allocation_id"],
        found["generation"],
        found["body"],
        found.get("signature", ""),
        found.get("key_id", ""),
        found.get("acknowledged", False),
        found["sequence"],
    )


def _is_whole(record: Mapping[str, Any]) -> bool:
    texts = [record.get(key) for key in TEXTS] + [record.get(key, "") for key in ("signature", "key_id")]
    numbers = [record.get(key) for key in ("generation", "sequence")]
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
        and isinstance(record.get("acknowledged", False), bool)
        and record.get("type") in (BOUND, RELEASED, FAILED)
    )
