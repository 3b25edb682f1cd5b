# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a Kubernetes release is reported, taken back or stuck, and what is done about a file that cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Condition, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Step
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_releases import pending
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import Assignment, Device
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Held, Now, Release
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.holds import Hold, releases_in
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_releases import (
    Turn,
    conditions,
    parse,
    quarantine,
    release,
    report,
    rewrite,
    settle_lost,
)
from tests.unit.fake_host import FakeHost

A, B = (f"GPU-5f1c2a90-0000-4000-8000-00000000000{at}" for at in (1, 2))
STATE = "/var/lib/bcd-hostconfig"
RELEASING, MARKER = f"{STATE}/releasing.json", f"{STATE}/releasing.unreadable"
NOW = 1_790_000_000
ONE = Release("alloc_1", (Device(A), Device(f"{B}/gi1/ci0", "gpu.mig")), 42, NOW - 9_000, NOW - 60)
TWO = Release("alloc_2", (Device(f"{B}/s3", "gpu.slot"),), 7, NOW - 800, NOW - 10)


def wanted(allocation: str, *ids: str, binding: str = "BINDING_KUBERNETES") -> dict[str, Assignment]:
    return {allocation: Assignment(allocation, binding, tuple(map(Device, ids)))}


def steps(todo: Todo) -> list[Step]:
    return list(todo.plan().steps)


# -- the file


def test_the_file() -> None:
    step = rewrite([TWO, ONE])
    assert (step.kind, step.path, step.mode) == ("write", RELEASING, 0o600)
    assert json.loads(step.text) == {
        "version": 1,
        "releases": {
            "alloc_1": {
                "devices": [{"id": A, "device_class": "gpu"}, {"id": f"{B}/gi1/ci0", "device_class": "gpu.mig"}],
                "generation": 42,
                "since": NOW - 9_000,
                "asked": NOW - 60,
            },
            "alloc_2": {
                "devices": [{"id": f"{B}/s3", "device_class": "gpu.slot"}],
                "generation": 7,
                "since": NOW - 800,
                "asked": NOW - 10,
            },
        },
    }
    assert "alloc_1, alloc_2" in step.action
    assert parse(step.text) == (ONE, TWO)


def test_every_unit_reads_the_same_file() -> None:
    assert releases_in(rewrite([ONE, TWO]).text) == (
        Hold("alloc_1", (A, f"{B}/gi1/ci0")),
        Hold("alloc_2", (f"{B}/s3",)),
    )


def test_the_file_goes_with_the_last_release() -> None:
    step = rewrite([])
    assert (step.kind, step.path) == ("remove", RELEASING)


def test_a_hold_s_release_keeps_what_is_to_be_reported() -> None:
    held = Held("alloc_2", TWO.devices, "BINDING_KUBERNETES", "rsv_1", 7, since=NOW - 800)
    assert release(held, NOW - 10) == TWO


def test_a_record_of_ids_alone_is_read() -> None:
    assert parse(json.dumps({"version": 1, "releases": {"a": {"devices": [A]}}})) == (
        Release("a", (Device(A),), 0, 0, 0),
    )
    assert parse('{"version": 1, "releases": {}}') == ()


def entry(**more: Any) -> str:
    return json.dumps({"version": 1, "releases": {"a": {"devices": [A], "generation": 1, **more}}})


DAMAGED = [
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"version": 1}',
    '{"version": 2, "releases": {}}',
    '{"version": 1, "releases": []}',
    '{"version": 1, "releases": {"a": []}}',
    '{"version": 1, "releases": {"a": {}}}',
    '{"version": 1, "releases": {"../../etc/x": {"devices": ["GPU-a"]}}}',
    '{"version": 1, "releases": {"\\ud800": {"devices": ["GPU-a"]}}}',
    '{"version": "\\ud800", "releases": {}}',
    entry(devices=[]),
    entry(devices=["eth0"]),
    entry(devices=[{"device_class": "gpu"}]),
    entry(devices=[7]),
    entry(devices=[{"id": A, "device_class": 7}]),
    entry(devices=A),
    entry(generation="1"),
    entry(since=True),
    entry(asked=None),
    "[" * 100_000,
    "\udcff\udcfe",
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_file_that_cannot_be_made_out_is_no_empty_one(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of no JSON, the words are Python's own
        parse(text)
    seen = pending(FakeHost({RELEASING: text}))
    assert seen.releases == ()
    assert seen.text == text
    assert seen.fault.startswith(RELEASING)
    seen.fault.encode()  # it is written down


def test_a_file_that_cannot_be_read_has_no_text() -> None:
    host = FakeHost({RELEASING: "{}"})
    host.unreadable.add(RELEASING)
    seen = pending(host)
    assert (seen.releases, seen.text, seen.lost) == ((), None, False)
    assert seen.fault == f"cannot read {RELEASING}: Permission denied"


def test_no_file_and_the_marker() -> None:
    assert pending(FakeHost()) == ((), "", None, False)
    assert pending(FakeHost({MARKER: "", RELEASING: rewrite([TWO]).text})) == ((TWO,), "", None, True)


# -- what becomes of a release


FREE = {A: "", f"{B}/gi1/ci0": "", f"{B}/s3": ""}


def test_what_no_pod_has_is_reported_and_what_one_has_waits() -> None:
    now = Now(time=NOW, releases=(ONE, TWO), pods=FREE)
    assert report(now, {}) == Turn(free=(ONE, TWO))
    for device in (A, f"{B}/gi1/ci0"):  # one device is enough
        held = now._replace(pods={**FREE, device: "pod n/p has it"})
        assert report(held, {}) == Turn(free=(TWO,), waiting=(ONE,))


def test_what_nobody_was_asked_of_waits() -> None:
    assert report(Now(time=NOW, releases=(ONE,), pods={A: ""}), {}) == Turn(waiting=(ONE,))


def test_what_is_wanted_again_is_taken_back_whoever_has_it() -> None:
    now = Now(time=NOW, releases=(ONE, TWO), pods={A: "pod n/p has it"})
    again = wanted("alloc_1", A, f"{B}/gi1/ci0")
    assert report(now, again) == Turn(back=(ONE,), waiting=(TWO,))
    assert report(now._replace(pods=FREE), again) == Turn(back=(ONE,), free=(TWO,))
    assert report(now, wanted("alloc_1", A, f"{B}/gi1/ci0", f"{B}/gi2/ci0")).back == (ONE,)


@pytest.mark.parametrize(
    "otherwise",
    [
        wanted("alloc_1", A),
        wanted("alloc_1", B),
        wanted("alloc_1", A, f"{B}/gi1/ci0", binding="BINDING_HOLD"),
        wanted("alloc_2", A, f"{B}/gi1/ci0"),
    ],
)
def test_wanted_otherwise_it_waits_for_its_pods(otherwise: dict[str, Assignment]) -> None:
    now = Now(time=NOW, releases=(ONE,), pods={**FREE, f"{B}/gi1/ci0": "pod n/p has it"})
    assert report(now, otherwise) == Turn(waiting=(ONE,))
    assert report(now._replace(pods=FREE), otherwise) == Turn(free=(ONE,))


# -- conditions


def said(now: Now, *waiting: Release) -> list[Condition]:
    todo = Todo()
    conditions(todo, now, waiting)
    return list(todo.plan().conditions)


def test_a_release_is_stuck_after_five_minutes_and_says_who_has_what() -> None:
    now = Now(time=NOW, pods={A: "pod n/p has it", f"{B}/gi1/ci0": "pod n/p has it", f"{B}/s3": "pod n/q has it"})
    assert said(now, ONE, TWO) == []
    assert said(now, ONE._replace(asked=NOW - 300)) == []
    ((kind, status, reason, message),) = said(now, ONE._replace(asked=NOW - 301), TWO)
    assert (kind, status, reason) == ("KubernetesReleaseStuck", "true", "PodsHoldDevices")
    assert "alloc_1 was released more than 5 minutes ago" in message
    assert f"{A}, {B}/gi1/ci0 (pod n/p has it)" in message
    assert "alloc_2" not in message
    late = said(now, ONE._replace(asked=NOW - 301), TWO._replace(asked=NOW - 301))
    assert len(late) == 1
    assert f"{B}/s3 (pod n/q has it)" in late[0].message


def test_a_stuck_release_says_the_same_on_every_pass() -> None:
    now = Now(time=NOW, pods={A: "pod n/p has it", f"{B}/gi1/ci0": ""})
    stuck = ONE._replace(asked=NOW - 301)
    assert said(now, stuck) == said(now._replace(time=NOW + 30), stuck)
    assert f"keeps its claim on {A} (pod n/p has it):" in said(now, stuck)[0].message


def test_lost_releases_are_reported_while_the_marker_is_there() -> None:
    ((kind, status, reason, message),) = said(Now(lost_releases=True, strangers="pod n/p has GPU-x"))
    assert (kind, status, reason) == ("KubernetesReleasesUnreadable", "true", "ReleasesFileUnreadable")
    assert message.startswith(MARKER)
    assert "every GPU counts as claimed while pod n/p has GPU-x" in message
    ((kind, _status, reason, message),) = said(Now(unread_releases=f"{RELEASING} is no JSON"))
    assert (kind, reason) == ("KubernetesReleasesUnreadable", "ReleasesFileUnreadable")
    assert message.startswith(f"{RELEASING} is no JSON")


# -- the quarantine


def quarantined(now: Now) -> list[Step]:
    todo = Todo()
    assert quarantine(todo, now) is bool(now.unread_releases)
    return steps(todo)


def test_a_file_that_is_read_is_left_alone() -> None:
    assert quarantined(Now(time=NOW, releases=(ONE,))) == []
    assert quarantined(Now(time=NOW, lost_releases=True)) == []


def test_the_copy_then_the_marker_then_the_file() -> None:
    text = "{ not json \udcff"
    copy, marker, gone = quarantined(Now(time=NOW, unread_releases="it is no JSON", releases_text=text))
    kept = f"{STATE}/releasing.json.unreadable-{NOW}"
    assert (copy.kind, copy.path, copy.text, copy.mode) == ("write", kept, text, 0o600)
    assert (marker.kind, marker.path, marker.mode) == ("write", MARKER, 0o600)
    assert "it is no JSON" in marker.text
    assert (gone.kind, gone.path) == ("remove", RELEASING)


def test_a_marker_that_is_there_stays_as_it_is() -> None:
    now = Now(time=NOW, unread_releases="it is no JSON", releases_text="", lost_releases=True)
    assert [(step.kind, step.path) for step in quarantined(now)] == [
        ("write", f"{STATE}/releasing.json.unreadable-{NOW}"),
        ("remove", RELEASING),
    ]


def test_what_not_even_the_bytes_are_read_of_is_moved_as_it_is() -> None:
    marker, move = quarantined(Now(time=NOW, unread_releases="cannot read it: Input/output error"))
    assert (marker.kind, marker.path) == ("write", MARKER)
    assert move.argv == ("mv", RELEASING, f"{STATE}/releasing.json.unreadable-{NOW}")


@pytest.mark.parametrize(
    ("now", "goes"),
    [
        (Now(lost_releases=True), True),
        (Now(lost_releases=True, strangers="pod n/p has GPU-x"), False),
        (Now(lost_releases=True, unread_releases="it is no JSON"), False),
        (Now(), False),
    ],
)
def test_the_marker_goes_once_no_pod_has_a_gpu_that_is_not_known(now: Now, goes: bool) -> None:
    todo = Todo()
    settle_lost(todo, now)
    assert [(step.kind, step.path) for step in steps(todo)] == ([("remove", MARKER)] if goes else [])
