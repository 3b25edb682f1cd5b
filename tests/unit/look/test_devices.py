# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds as their files tell them, and how much of a host a section makes a look see."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotReady
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.cards import cards
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.devices import held, look
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import (
    HOLD,
    KUBERNETES,
    Assignment,
    Device,
    Limits,
    Section,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import BOUND, Card, Held
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hold_record import render
from tests.unit.fake_host import FakeHost
from tests.unit.hold_host import H100, assign, go, hold_host, part, uuids

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
RECORD, SPEC, ENV = "/var/lib/bcd-hostconfig/holds/a1.json", "/etc/cdi/bcd-a1.json", "/run/bcd/allocations/a1.env"
HELD = Held("a1", (Device(A),), HOLD, "r1", 7, Limits(cpus="0-3"), ("X=1",), 1_800_000_000, BOUND)
CDI: dict[str, Any] = {
    "cdiVersion": "0.6.0",
    "kind": "bcd.dev/gpu",
    "annotations": {
        "bcd.dev/allocation-id": "a1",
        "bcd.dev/reservation-id": "r1",
        "bcd.dev/generation": "7",
        "bcd.dev/cgroup-parent": "bcd-alloc-a1.slice",
    },
    "devices": [
        {"name": A, "annotations": {"bcd.dev/device-id": A}, "containerEdits": {"env": [f"BCD_DEVICE_ID={A}"]}}
    ],
    "containerEdits": {"env": ["BCD_ALLOCATION_ID=a1", f"NVIDIA_VISIBLE_DEVICES={A}"]},
}
LINES = f"BCD_ALLOCATION_ID=a1\nNVIDIA_VISIBLE_DEVICES={A}\nX=1\n"


def host_with(**files: str | None) -> FakeHost:
    """A host with one hold's files as they should be, apart from those that are given; None: not there."""
    texts = {"record": render(HELD), "spec": json.dumps(CDI), "env": LINES, **files}
    host = FakeHost()
    for path, name, mode in ((RECORD, "record", 0o600), (SPEC, "spec", 0o644), (ENV, "env", 0o644)):
        text = texts[name]
        if text is not None:
            host.files[path] = File(text, mode)
    return host


def test_a_hold_is_what_its_record_says() -> None:
    expected = HELD._replace(record_text=render(HELD), spec_text=json.dumps(CDI), env_text=LINES)
    assert held(host_with()) == {"a1": expected}
    assert held(host_with(spec="{", env=None)) == {"a1": expected._replace(spec_text="{", env_text=None)}


@pytest.mark.parametrize("record", [None, "{", "[]", render(HELD._replace(allocation="a2"))])
def test_without_its_record_a_hold_is_what_its_specification_and_env_file_say(record: str | None) -> None:
    found = held(host_with(record=record))["a1"]
    assert found == HELD._replace(
        limits=Limits(),  # there are some
        since=0,
        spec_text=json.dumps(CDI),
        env_text=LINES,
        askew=() if record is None else (RECORD,),
    )


@pytest.mark.parametrize("record", [None, "{"])
@pytest.mark.parametrize("spec", [None, "{", json.dumps({**CDI, "kind": "nvidia.com/gpu"})])
def test_a_hold_that_neither_file_tells_is_a_fault_that_names_them(record: str | None, spec: str | None) -> None:
    found = held(host_with(record=record, spec=spec))
    if record is None and spec is None:
        assert found == {}
        return
    assert found["a1"].devices == ()
    assert [path in found["a1"].fault for path in (RECORD, SPEC)] == [record is not None, spec is not None]


@pytest.mark.parametrize("name", ["a-1", "a.b", "\u0661", "a" * 81])
def test_a_name_that_is_no_allocations_is_a_fault(name: str) -> None:
    assert "is no allocation's id" in held(FakeHost({f"/etc/cdi/bcd-{name}.json": json.dumps(CDI)}))[name].fault


@pytest.mark.parametrize(("mode", "uid"), [(0o644, 0), (0o600, 1000), (0o640, 0)])
def test_a_record_that_is_not_roots_alone_is_askew(mode: int, uid: int) -> None:
    host = host_with()
    host.files[RECORD] = File(render(HELD), mode, uid)
    assert held(host)["a1"].askew == (RECORD,)


def test_a_link_is_no_file_of_a_hold() -> None:
    host = host_with(spec=None)
    host.put("/elsewhere", json.dumps(CDI))
    host.links[SPEC] = "/elsewhere"
    found = held(host)["a1"]
    assert (found.fault, found.spec_text, found.askew) == ("", None, (SPEC,))
    del host.files[RECORD]
    assert f"{SPEC} is no regular file" in held(host)["a1"].fault


def test_a_draft_and_other_files_are_no_holds() -> None:
    others = ("/etc/cdi/.bcd-a1.json.bcd-new", "/etc/cdi/nvidia.json", "/etc/cdi/bcd-a1.yaml", "/etc/cdi/bcd-.json")
    assert held(FakeHost(dict.fromkeys((*others, "/var/lib/bcd-hostconfig/holds/.a1.json.bcd-new"), "{}"))) == {}


def test_another_account_sees_what_the_specifications_say() -> None:
    host = host_with()
    host.user = 1000
    host.unreadable.update((RECORD, "/var/lib/bcd-hostconfig/releasing.json"))
    now = look(host, Section(), Past())
    assert (now.root, now.held["a1"].devices, now.held["a1"].record_text) == (False, (Device(A),), None)


# -- how much is looked at


def test_a_host_that_is_to_hold_nothing_starts_no_program() -> None:
    host = hold_host()
    now = look(host, Section(), Past("boot-1"))
    assert (now.boot_id, now.time, now.held, now.cards, host.asked) == ("boot-1", host.unix, {}, (), [])


def test_memory_is_read_for_a_new_hold_that_has_limits_alone() -> None:
    host = hold_host()
    gpu = uuids(host)[0]
    plain = Assignment("a1", HOLD, (Device(gpu),))
    limited = plain._replace(limits=Limits(memory_bytes=1 << 30))
    assert look(host, Section((plain,)), Past()).memory is None
    memory = look(host, Section((limited,)), Past()).memory
    assert memory is not None
    assert memory.total == 64 << 30
    go(host, assign("a1", gpu, limits={"memory_bytes": 1 << 30}))
    assert look(host, Section((limited,)), Past()).memory is None


@pytest.mark.parametrize("wanted", [HOLD, KUBERNETES])
def test_vendors_are_seen_for_a_plain_hold_whatever_its_assignment_says_now(wanted: str) -> None:
    host = hold_host()
    gpu = uuids(host)[0]
    go(host, assign("a1", gpu))
    now = look(host, Section((Assignment("a1", wanted, (Device(gpu),)),)), Past())
    assert [vendor.path for vendor in now.vendors] == ["/etc/cdi/nvidia.json"]


# -- GPUs


def test_gpus_with_their_mig_devices_by_instance() -> None:
    host = hold_host(H100, H100)
    first, second = uuids(host)
    part(host, 0, "3g.40gb", "1g.10gb", "1g.10gb")
    card = host.machine.cards[0]
    mig = {(gi.id, ci.id): card.device_uuid(gi, ci, host.machine.branch) for gi, ci in card.devices()}
    assert len(mig) == 3
    assert cards(host) == (Card(first, card.pci, mig), Card(second, host.machine.cards[1].pci))


def test_gpus_without_mig_are_asked_for_no_instances() -> None:
    host = hold_host()
    cards(host)
    assert len(host.asked) == 1


def test_a_gpu_that_is_lost_has_its_fault() -> None:
    host = hold_host()
    host.machine.cards[1].dead = "fields"
    first, second = cards(host)
    assert (first.fault, "GPU is lost" in second.fault, second.uuid) == ("", True, uuids(host)[1])


def test_a_driver_that_does_not_run_is_waited_for() -> None:
    host = hold_host()
    text = (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running.\n"
    )
    host.programs["nvidia-smi"] = lambda _host, _argv: Answer(9, text)
    with pytest.raises(NotReady):
        cards(host)
