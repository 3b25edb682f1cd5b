# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of binds, releases and failures, and the journal that keeps them until they are acknowledged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Plan, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Step
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.events import events
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import Device, Section
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Event, Held, Release
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.events import (
    EVENTS,
    Journal,
    bound,
    failed,
    parse_event,
    path_of,
    released,
    text_of,
)
from tests.unit.fake_host import FakeHost

GPU = "GPU-5f1c2a90-0000-4000-8000-000000000001"
SECTION = Section(generation=43, node_id="node_7")
HELD = Held("alloc_01jz8k2v", (Device(GPU), Device(f"{GPU}/gi1/ci0", "gpu.mig")), generation=42, since=1760000000)
BOOT = "6f0c1d2e-0000-4000-8000-00000000000b"


def test_a_bound_hold_is_reported_with_where_it_is() -> None:
    event = bound(HELD, SECTION, BOOT, "bcd-alloc-alloc_01jz8k2v.slice")
    assert event.id == "bound-alloc_01jz8k2v-42-1760000000"
    assert event.body == (
        '{"allocation_id":"alloc_01jz8k2v","boot_id":"' + BOOT + '",'
        f'"cdi_devices":["bcd.dev/gpu={GPU}","bcd.dev/gpu={GPU}_gi1_ci0"],'
        '"cdi_spec_path":"/etc/cdi/bcd-alloc_01jz8k2v.json",'
        '"cgroup_parent":"bcd-alloc-alloc_01jz8k2v.slice",'
        f'"device_ids":["{GPU}","{GPU}/gi1/ci0"],'
        '"env_file":"/run/bcd/allocations/alloc_01jz8k2v.env",'
        '"generation":42,"node_id":"node_7","type":"AllocationBound"}'
    )
    assert (event.type, event.allocation, event.generation) == ("AllocationBound", "alloc_01jz8k2v", 42)


def test_only_a_hold_in_a_slice_names_one() -> None:
    assert "cgroup_parent" not in json.loads(bound(HELD, SECTION, BOOT).body)


@pytest.mark.parametrize("held", [HELD, Release("alloc_01jz8k2v", HELD.devices, 42, 1760000000, 1760009999)])
def test_a_release_is_reported_alike_whether_it_waited_for_pods_or_not(held: Any) -> None:
    event = released(held, SECTION, BOOT)
    assert event.id == "released-alloc_01jz8k2v-42-1760000000"
    assert json.loads(event.body) == {
        "type": "AllocationReleased",
        "node_id": "node_7",
        "boot_id": BOOT,
        "allocation_id": "alloc_01jz8k2v",
        "generation": 42,
        "device_ids": [GPU, f"{GPU}/gi1/ci0"],
    }


def test_a_failure_is_reported_with_its_reason() -> None:
    event = failed("alloc_9", 43, "device-missing", f"{GPU} not present")
    assert event.id == "failed-alloc_9-43"
    assert json.loads(event.body) == {
        "type": "AllocationFailed",
        "allocation_id": "alloc_9",
        "generation": 43,
        "reason": "device-missing",
        "message": f"{GPU} not present",
    }


@pytest.mark.parametrize("code", [0xDCFF, 0xD800])  # what stands for a byte, and half of a pair from JSON
def test_a_body_is_utf8_whatever_a_message_quotes(code: int) -> None:
    body = failed("alloc_9", 1, "unsupported-device", f'"{chr(code)}" is not a slot id').body
    assert chr(code) not in body.encode().decode()
    assert "is not a slot id" in body


def test_what_the_journal_writes_it_reads_again() -> None:
    for event in (
        released(HELD, SECTION, BOOT),
        failed("a", 1, "overlap", 'größe "x"\n')._replace(sequence=9, acknowledged=True),
        released(HELD, SECTION, BOOT)._replace(sequence=3, signature="c2ln", key_id="sha256/a2V5"),
    ):
        assert parse_event("x", text_of(event)) == event
        assert json.loads(text_of(event))["version"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"id": None},
        {"type": "AllocationLost"},
        {"allocation_id": 5},
        {"generation": "42"},
        {"generation": True},
        {"sequence": None},
        {"body": {}},
        {"signature": 1},
        {"acknowledged": "yes"},
    ],
)
def test_a_file_that_is_no_event_is_named(change: dict[str, Any]) -> None:
    record = {**json.loads(text_of(released(HELD, SECTION, BOOT))), **change}
    with pytest.raises(StepFailed, match=r"^/x is not a record of version 1: look at it, then move it away") as raised:
        parse_event("/x", json.dumps(record))
    assert not raised.value.retryable


# -- the journal


def planned(journal: tuple[Event, ...], *add: Event, accepted: tuple[str, ...] = ()) -> Plan:
    todo, kept = Todo(), Journal(journal)
    with todo.lane("a"):
        for event in add:
            kept.add(todo, event)
    kept.settle(todo, accepted)
    return todo.plan()


def written(step: Step) -> Event:
    return parse_event(step.path, step.text)


ONE = failed("alloc_1", 5, "overlap", "a device is listed twice")._replace(sequence=4)
TWO = released(HELD, SECTION, BOOT)._replace(sequence=7)


def test_an_event_is_journaled_in_a_file_that_only_root_reads_in_the_order_of_the_plan() -> None:
    plan = planned((ONE,), released(HELD, SECTION, BOOT), failed("alloc_2", 5, "overlap", "x"))
    assert [(step.kind, step.path, step.mode, step.lane) for step in plan.steps] == [
        ("write", f"{EVENTS}/released-alloc_01jz8k2v-42-1760000000.json", 0o600, "a"),
        ("write", f"{EVENTS}/failed-alloc_2-5.json", 0o600, "a"),
    ]
    assert [written(step).sequence for step in plan.steps] == [5, 6]


def test_an_event_that_is_there_is_not_written_again_whatever_boot_it_would_name() -> None:
    assert planned((TWO,), released(HELD, SECTION, "another-boot")).steps == ()


def test_an_acknowledged_event_goes() -> None:
    (step,) = planned((ONE, TWO), accepted=(TWO.id,)).steps
    assert (step.kind, step.path) == ("remove", path_of(TWO.id))


def test_one_that_still_stands_is_remembered_and_goes_once_it_does_not() -> None:
    again = ONE._replace(sequence=0)
    (step,) = planned((ONE,), again, accepted=(ONE.id,)).steps
    known = written(step)
    assert known == ONE._replace(acknowledged=True)
    assert step.mode == 0o600
    assert planned((known,), again).steps == ()
    assert planned((known,), again, accepted=(ONE.id,)).steps == ()
    (gone,) = planned((known,)).steps
    assert (gone.kind, gone.path) == ("remove", path_of(ONE.id))


def test_an_event_that_nobody_acknowledged_stays() -> None:
    assert planned((ONE, TWO), accepted=("bound-other-1-1",)).steps == ()


def test_a_damaged_event_fails_alone_until_it_is_written_again_or_acknowledged() -> None:
    damaged = Event(ONE.id, fault="the file is damaged: look at it")
    (step,) = planned((damaged, TWO)).steps
    assert (step.kind, step.text, step.retry) == ("fail", damaged.fault, False)
    assert step.lane not in ("", "events")
    (mended,) = planned((damaged,), ONE._replace(sequence=0)).steps
    assert (mended.kind, written(mended).body) == ("write", ONE.body)
    (gone,) = planned((damaged,), accepted=(ONE.id,)).steps
    assert (gone.kind, gone.path) == ("remove", path_of(ONE.id))


# -- the look


def test_events_are_returned_in_the_order_in_which_they_happened() -> None:
    later = bound(HELD, SECTION, BOOT)._replace(sequence=8)
    host = FakeHost({path_of(event.id): text_of(event) for event in (later, ONE, TWO)})
    host.put(f"{EVENTS}/.draft.json.bcd-new", "half")
    assert events(host) == (ONE, TWO, later)
    assert events(FakeHost()) == ()


def test_one_damaged_event_does_not_hide_the_others() -> None:
    host = FakeHost({path_of(ONE.id): text_of(ONE), path_of("bound-x-1-1"): "{", path_of("other"): text_of(TWO)})
    host.unreadable.add(path_of(TWO.id))
    host.put(path_of(TWO.id), text_of(TWO))
    found = {event.id: event for event in events(host)}
    assert found[ONE.id] == ONE
    assert found["bound-x-1-1"].fault.startswith(f"{path_of('bound-x-1-1')} is not a record of version 1")
    assert found["other"].fault.startswith(f"{path_of('other')} is the event {TWO.id} under another name")
    assert found[TWO.id].fault == f"cannot read {path_of(TWO.id)}: Permission denied"


def test_who_is_not_root_knows_nothing_of_the_journal() -> None:
    host = FakeHost({path_of(ONE.id): text_of(ONE)})
    host.user = 1000
    host.unreadable.add(path_of(ONE.id))
    with pytest.raises(Unreadable):
        events(host)
