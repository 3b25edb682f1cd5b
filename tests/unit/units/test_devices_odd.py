# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds where something is odd: damaged files together, a clock that stands, names that are ours elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.devices import UNIT
from tests.gpu.fake import GpuHost
from tests.unit import promises
from tests.unit.hold_host import (
    KUBERNETES,
    add_kubelet,
    assign,
    events,
    files,
    go,
    hold_host,
    reasons,
    record,
    section,
    uuids,
)
from tests.unit.slice_host import slice_folder

STATE = "/var/lib/bcd-hostconfig"
RECORD, SPEC = f"{STATE}/holds/{{}}.json", "/etc/cdi/bcd-{}.json"


def damage(host: GpuHost, allocation: str) -> None:
    host.put(RECORD.format(allocation), "garbage")
    host.put(SPEC.format(allocation), "{}")


def no_driver(host: GpuHost) -> None:
    del host.programs["nvidia-smi"]


def no_passthrough(host: GpuHost) -> None:
    host.put(f"{STATE}/passthrough.json", "garbage")


@pytest.mark.parametrize("lacks", [no_driver, no_passthrough])
def test_a_damaged_hold_keeps_no_other_from_its_release(lacks: Any) -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a", first), assign("b", second))
    damage(host, "a")
    lacks(host)
    done = go(host, assign("a", first))
    assert done.state != "converged"
    assert "b" not in done.found["held"]
    assert "released-b-1" in events(host)
    assert host.text(RECORD.format("a")) == "garbage"


@pytest.mark.parametrize("lacks", [no_driver, no_passthrough])
def test_a_damaged_hold_has_every_gpu_whatever_else_is_not_known(lacks: Any) -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a", first))
    damage(host, "a")
    lacks(host)
    done = go(host, assign("a", first), assign("b", second))
    assert done.state != "converged"
    assert host.text(RECORD.format("b")) is None


def test_a_record_that_names_no_device_never_frees_one() -> None:
    host = hold_host()
    first, _second = uuids(host)
    go(host, assign("a", first))
    host.put(RECORD.format("a"), json.dumps({**record(host, "a"), "devices": [{"id": "x", "device_class": "gpu"}]}))
    done = go(host, assign("a", first), assign("b", first))
    assert reasons(done) == {"b": ("overlap", f"{first} is assigned to a")}
    assert record(host, "a")["devices"] == [{"id": first, "device_class": "gpu"}]


def test_what_cannot_be_made_out_says_once_what_to_do() -> None:
    host = hold_host()
    host.put(SPEC.format("z"), "garbage")
    done = go(host)
    assert done.failure is not None
    assert done.failure.message == (
        "/etc/cdi/bcd-z.json is no JSON, and every GPU counts as held: look at it, and repair or remove it"
    )


def test_a_hold_made_anew_while_the_clock_stands_is_reported_as_another() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a", first))
    go(host)
    done = promises.check_is_truthful(UNIT, lambda: host, section(assign("a", second)))
    assert done.state == "converged"
    told = [json.loads(text) for path, text in files(host).items() if "/events/" in path]
    bodies = [json.loads(event["body"]) for event in sorted(told, key=lambda event: event["sequence"])]
    assert [(body["type"], body["device_ids"]) for body in bodies] == [
        ("AllocationBound", [first]),
        ("AllocationReleased", [first]),
        ("AllocationBound", [second]),
    ]


@pytest.mark.parametrize("name", ["passthrough", "slices"])
def test_an_allocation_may_be_called_as_something_here_is(name: str) -> None:
    host = hold_host()
    kept = assign(name, uuids(host)[0])
    go(host, kept)
    no_passthrough(host)
    host.put("/sys/fs/cgroup/bcd.slice/bcd-alloc.slice/bcd-alloc-z.slice/cgroup.events", "populated 0\n")
    host.programs["systemctl"] = lambda _host, _argv: Answer(1, "", "no bus")
    host.remove(f"/run/bcd/allocations/{name}.env")
    done = go(host, kept)
    assert done.failure is not None
    assert [line.action for line in done.steps if line.done] == [f"write /run/bcd/allocations/{name}.env"]


def test_a_slice_that_somebody_gave_other_cpus_gets_its_own_again() -> None:
    host = hold_host()
    wanted = section(assign("a", uuids(host)[0], limits={"cpus": "0-1", "mems": "0"}))
    promises.go(UNIT, host, wanted)
    for file in ("cpuset.cpus", "cpuset.cpus.effective"):
        host.put(f"{slice_folder('a')}/{file}", "2-3\n")
    done = promises.check_is_truthful(UNIT, lambda: host, wanted)
    assert done.state == "converged"
    assert host.text(f"{slice_folder('a')}/cpuset.cpus") == "0-1\n"


def test_a_kubernetes_hold_is_released_in_the_pass_that_finds_the_releases_damaged() -> None:
    host = hold_host()
    add_kubelet(host)
    go(host, assign("k", uuids(host)[0], binding=KUBERNETES))
    host.put(f"{STATE}/releasing.json", "garbage")
    done = promises.check_is_truthful(UNIT, lambda: host, section())
    assert (done.state, done.failure) == ("converged", None)
    assert host.text(f"{STATE}/releasing.json") is None
    assert host.text(f"{STATE}/releasing.json.unreadable-{host.unix}") == "garbage"
    assert events(host) == ["bound-k-1", "released-k-1"]
    promises.second_pass_is_quiet(UNIT, host, section())


@pytest.mark.parametrize("lost", ["releasing.json", "releasing.unreadable"])
def test_lost_releases_that_nobody_has_fail_no_hold(lost: str) -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a", first))
    damage(host, "a")
    host.put(f"{STATE}/{lost}", "garbage")
    wanted = section(assign("a", first), assign("b", second))
    done = promises.check_is_truthful(UNIT, lambda: host, wanted)
    assert (done.state, reasons(done)) == ("converged", {})
    assert [name for name in events(host) if name.startswith(("failed", "bound-b"))] == ["bound-b-1"]
    assert [record(host, name)["state"] for name in ("a", "b")] == ["bound", "bound"]
    promises.second_pass_is_quiet(UNIT, host, wanted)


def test_lost_releases_that_cannot_be_moved_away_have_every_gpu() -> None:
    host = hold_host()
    host.put(f"{STATE}/releasing.json", "")
    host.unreadable.add(f"{STATE}/releasing.json")
    first = uuids(host)[0]
    done = go(host, assign("a", first))
    pending = f"{first} is assigned to (pending Kubernetes releases that could not be read)"
    assert reasons(done) == {"a": ("overlap", pending)}
    assert host.text(RECORD.format("a")) is None


def test_a_cpulist_that_is_none_waits_with_what_waits_for_a_release() -> None:
    host = hold_host()
    first, _second = uuids(host)
    go(host, assign("old", first))
    go(host, assign("a", first), assign("b", first, limits={"cpus": "x"}), generation=2)
    assert "failed-b-2" in events(host)


def test_a_hold_whose_cpulist_is_none_keeps_its_place_and_is_no_failure() -> None:
    host = hold_host()
    first, second = uuids(host)
    wanted = [assign("a", first, limits={"cpus": "x"}), assign("b", second), assign("c", first)]
    done = go(host, *wanted)
    assert done.state == "progressing"
    assert reasons(done) == {"c": ("overlap", f"{first} is assigned to a")}
    assert events(host) == ["bound-b-1", "failed-c-1"]
    go(host, assign("a", first, limits={"cpus": "0"}), *wanted[1:])
    assert record(host, "a")["state"] == "bound"
