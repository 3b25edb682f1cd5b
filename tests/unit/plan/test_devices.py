# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan over holds where a look could not tell everything: what one part lacks keeps the others from nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet, NotReady, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import Unknown
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import (
    HOLD,
    KUBERNETES,
    Assignment,
    Device,
    Section,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices import plan
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_release import SLICES
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Card, Held, Now, Release, Slice
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hold_record import render

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
B = "GPU-5f1c2a90-0000-4000-8000-000000000002"
NODES = [{"name": gpu, "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}} for gpu in (A, B)]
OLD = Held("old", (Device(A),), since=7, env_text="x", spec_text="{}")
LEAVING = {"old": OLD._replace(record_text=render(OLD))}
NEW = Assignment("new", HOLD, (Device(B),))


def unknown(why: Exception) -> Any:
    return Unknown(why)


def lanes(done: Plan) -> dict[str, list[str]]:
    """The kinds of each lane's steps."""
    found: dict[str, list[str]] = {}
    for step in done.steps:
        found.setdefault(step.lane, []).append(step.kind)
    return found


RELEASE = ["remove", "remove", "write", "remove"]  # env file, specification, event, record
BIND = ["write"] * 5  # record, specification, env file, event, record


def test_releases_and_binds_each_in_their_lane() -> None:
    done = plan(Section((NEW,)), Now(held=LEAVING, cards=(Card(A), Card(B))), Past())
    assert lanes(done) == {"old": RELEASE, "new": BIND}
    assert [step.lane for step in done.steps] == ["old"] * 4 + ["new"] * 5
    assert done.found == {"held": ["old"], "releasing": [], "failures": []}


@pytest.mark.parametrize("field", ["cards", "domains", "vfio", "vendors", "passed"])
@pytest.mark.parametrize(
    ("why", "kinds"),
    [
        (NotKnownYet("the driver is loaded"), ["later"]),
        (NotReady("no driver"), []),
        (StepFailed("no answer"), ["fail"]),
    ],
)
def test_what_a_new_hold_needs_and_nobody_knows_keeps_no_hold_from_going(
    field: str, why: Exception, kinds: list[str]
) -> None:
    now = Now(held=LEAVING, cards=(Card(A), Card(B)))._replace(**{field: unknown(why)})
    done = plan(Section((NEW,)), now, Past())
    assert lanes(done)["old"] == RELEASE
    waits = isinstance(why, NotReady) or (field == "cards" and isinstance(why, StepFailed))
    assert lanes(done).get("new", []) == ([] if waits else kinds)
    assert [wait.lane for wait in done.pending if wait.lane == "new"] == (["new"] if waits else [])
    assert done.found["failures"] == []


def test_slices_that_nobody_knows_keep_a_hold_from_going_whole() -> None:
    """Its files go; its record stays until it is known that its slice went too."""
    done = plan(Section(), Now(held=LEAVING, slices=unknown(StepFailed("no answer"))), Past())
    assert lanes(done) == {"old": [*RELEASE[:3], "fail"], SLICES: ["fail"]}


def test_leftover_slices_go_once_they_are_empty() -> None:
    left = {"gone": Slice(active=True), "busy": Slice(active=True, populated=True), "new": Slice(active=True)}
    done = plan(Section((NEW,)), Now(slices=left, cards=(Card(B),)), Past())
    assert [step.argv for step in done.steps if step.kind == "run"] == [("systemctl", "stop", "bcd-alloc-gone.slice")]


def test_releases_whose_pods_are_not_known_stay_claimed() -> None:
    release = Release("k1", (Device(B),), 1, 7, 100)
    now = Now(cards=(Card(A), Card(B)), releases=(release,), pods=unknown(NotKnownYet("it is seen as root")), time=110)
    done = plan(Section((NEW,)), now, Past())
    assert lanes(done) == {"Kubernetes releases": ["later"], "new": ["write"]}
    assert done.found["failures"] == [
        {"allocation_id": "new", "reason": "overlap", "message": f"{B} is assigned to k1"}
    ]


def test_a_kubernetes_hold_is_not_withdrawn_before_its_release_is_recorded() -> None:
    held = {"old": LEAVING["old"]._replace(binding=KUBERNETES, record_text="x")}
    done = plan(Section(), Now(held=held, time=100), Past())
    assert lanes(done) == {"Kubernetes releases": ["write", "remove", "remove", "remove"]}
    assert done.steps[0].path.endswith("/releasing.json")


def test_a_hold_waits_for_the_device_that_this_very_plan_releases() -> None:
    wanted = (NEW._replace(devices=(Device(A),)), Assignment("after", HOLD, (Device(f"{A}/s1", "gpu.slot"),)))
    done = plan(Section(wanted), Now(held=LEAVING, cards=(Card(A),)), Past())
    assert (lanes(done), done.found["failures"]) == ({"old": RELEASE}, [])
    assert [(wait.reason, wait.lane) for wait in done.pending] == [("NotReady", "new"), ("NotReady", "after")]
