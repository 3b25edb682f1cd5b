# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live holds and pending releases: whatever cannot be made out has every GPU."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.holds import holds, releasing
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.holds import Hold, has
from tests.unit.fake_host import FakeHost

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
SPEC = "/etc/cdi/bcd-alloc_1.json"
RECORD = "/var/lib/bcd-hostconfig/holds/alloc_1.json"
RELEASING = "/var/lib/bcd-hostconfig/releasing.json"
MARKER = "/var/lib/bcd-hostconfig/releasing.unreadable"


def spec(*devices: dict[str, Any], kind: str = "bcd.dev/gpu") -> str:
    return json.dumps({"cdiVersion": "0.6.0", "kind": kind, "devices": list(devices)})


def device(name: str, **annotations: str) -> dict[str, Any]:
    return {"name": name, "annotations": annotations, "containerEdits": {"env": ["A=b"]}}


def annotated(identifier: str) -> dict[str, Any]:
    name = identifier.replace("/", "_")
    return {"name": name, "annotations": {"bcd.dev/device-id": identifier}, "containerEdits": {"env": ["A=b"]}}


def test_a_host_without_holds() -> None:
    assert (holds(FakeHost()), releasing(FakeHost())) == ((), ())
    assert holds(FakeHost({"/etc/cdi/nvidia.json": "{}", "/etc/cdi/nvidia.yaml": "not ours"})) == ()


def test_whose_devices_a_spec_names() -> None:
    parts = (A, f"{A}/gi1/ci0", f"{A}/s3")
    host = FakeHost({SPEC: spec(*(annotated(part) for part in parts)), "/etc/cdi/.bcd-alloc_1.json.bcd-new": "{"})
    assert holds(host) == (Hold("alloc_1", parts),)


def test_where_no_annotation_may_be_the_name_tells_the_device() -> None:
    bare = {"name": f"{A}_gi1_ci0", "containerEdits": {"env": ["A=b"]}}
    assert holds(FakeHost({SPEC: spec(bare, device(f"{A}_s3"))})) == (Hold("alloc_1", (f"{A}/gi1/ci0", f"{A}/s3")),)


@pytest.mark.parametrize("devices", [[A], [{"id": A, "device_class": "gpu"}]])
def test_a_record_without_its_spec_is_a_hold(devices: list[Any]) -> None:
    host = FakeHost({RECORD: json.dumps({"version": 1, "devices": devices})})
    assert holds(host) == (Hold("alloc_1", (A,)),)


def test_a_spec_and_its_record_are_one_hold_of_what_either_names() -> None:
    record = json.dumps({"devices": [A, f"{A}/s1"]})
    host = FakeHost({SPEC: spec(annotated(A)), RECORD: record, "/etc/cdi/bcd-alloc_0.json": spec(annotated(f"{A}/s2"))})
    assert holds(host) == (Hold("alloc_0", (f"{A}/s2",)), Hold("alloc_1", (A, f"{A}/s1")))


UNCLEAR = [
    "",
    "{",
    "[]",
    "null",
    '"bcd.dev/gpu"',
    spec(),
    spec(annotated(A), kind="nvidia.com/gpu"),
    json.dumps({"kind": "bcd.dev/gpu"}),
    json.dumps({"kind": "bcd.dev/gpu", "devices": {"name": A}}),
    json.dumps({"kind": "bcd.dev/gpu", "devices": [A]}),
    spec({"annotations": {}}),
    spec(annotated(A), device("all")),
    spec(device(A, **{"bcd.dev/device-id": "nic0"})),
    "[" * 100_000,
]


@pytest.mark.parametrize("text", UNCLEAR)
def test_a_spec_that_cannot_be_made_out_has_every_gpu(text: str) -> None:
    (hold,) = holds(FakeHost({SPEC: text}))
    assert (hold.allocation, hold.devices) == ("alloc_1", ())
    assert hold.fault.startswith(SPEC)
    assert hold.fault.endswith("every GPU counts as held: look at it, and repair or remove it")
    assert has(hold, "GPU-any")


@pytest.mark.parametrize("text", ["{", "{}", '{"devices": []}', '{"devices": [1]}', '{"devices": ["eth0"]}', "[]"])
def test_a_record_that_cannot_be_made_out_has_every_gpu_whatever_its_spec_says(text: str) -> None:
    (hold,) = holds(FakeHost({SPEC: spec(annotated(A)), RECORD: text}))
    assert hold.fault.startswith(RECORD)
    assert has(hold, "GPU-any")


def test_a_link_to_nothing_has_every_gpu_and_is_called_what_it_is() -> None:
    host = FakeHost(links={SPEC: "/mnt/specs/alloc_1.json"})
    (hold,) = holds(host)
    assert hold.fault.startswith(f"{SPEC} is a link to /mnt/specs/alloc_1.json, where nothing is, and every GPU")
    assert has(hold, "GPU-any")


def test_a_hold_is_one_whatever_its_file_is_called() -> None:
    odd = "a\nb \udcff.json"
    host = FakeHost({f"/etc/cdi/bcd-{odd}.json": spec(annotated(A)), f"/var/lib/bcd-hostconfig/holds/{odd}.json": "{"})
    (hold,) = holds(host)
    assert (hold.allocation, hold.devices, bool(hold.fault)) == (odd, (A,), True)


def test_a_file_that_root_cannot_read_has_every_gpu_and_is_not_known_to_others() -> None:
    host = FakeHost({SPEC: spec(annotated(A))})
    host.unreadable.add(SPEC)
    (hold,) = holds(host)
    assert hold.fault.startswith(f"cannot read {SPEC}: Permission denied, and every GPU counts as held")
    host.user = 1000
    with pytest.raises(Unreadable):
        holds(host)
    with pytest.raises(NotKnownYet):
        holds(PredictedHost(host))


def test_pending_releases() -> None:
    record = {"version": 1, "releases": {"b": {"devices": [f"{A}/gi1/ci0"], "generation": 7}, "a": {"devices": [A]}}}
    assert releasing(FakeHost({RELEASING: json.dumps(record)})) == (Hold("a", (A,)), Hold("b", (f"{A}/gi1/ci0",)))
    assert releasing(FakeHost({RELEASING: '{"version": 1, "releases": {}}'})) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"releases": {}}',
        '{"version": 2, "releases": {}}',
        '{"version": 1, "releases": []}',
        '{"version": 1, "releases": {"a": {"devices": []}}}',
    ],
)
def test_a_releases_file_that_cannot_be_made_out_has_every_gpu(text: str) -> None:
    (hold,) = releasing(FakeHost({RELEASING: text}))
    assert hold.fault.startswith(RELEASING)
    assert "every GPU counts as held" in hold.fault


def test_releases_that_were_lost_have_every_gpu() -> None:
    (hold,) = releasing(FakeHost({MARKER: "", RELEASING: '{"version": 1, "releases": {}}'}))
    assert hold.allocation == "(pending Kubernetes releases that could not be read)"
    assert hold.fault.startswith(MARKER)
