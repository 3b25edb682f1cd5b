# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds over a simulated host: bound, kept, released, refused, by the real runner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.devices import UNIT
from tests.gpu.fake import GpuHost
from tests.gpu.model import Fault
from tests.kubelet.pods import Container, Pod
from tests.unit import promises
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.hold_host import (
    H100,
    KUBERNETES,
    VENDOR,
    add_kubelet,
    assign,
    describe,
    env,
    events,
    files,
    go,
    hold_host,
    part,
    reasons,
    record,
    section,
    spec,
    uuids,
)
from tests.unit.slice_host import reboot_slices, run_in, slice_folder

ENV, RECORD, SPEC = "/run/bcd/allocations/{}.env", "/var/lib/bcd-hostconfig/holds/{}.json", "/etc/cdi/bcd-{}.json"
RELEASING = "/var/lib/bcd-hostconfig/releasing.json"
UNPRIVILEGED = (
    "bcd node runs without root and without [helper]: it cannot write /etc/cdi or create hold slices "
    "(run bcd node as root, or under bcd helper)"
)
LIMITS: dict[str, Any] = {"cpus": "0-3", "mems": "0", "memory_bytes": 4 << 30}


def pod(*devices: str) -> Pod:
    return Pod("uid-1", "trainer", (Container(devices=devices),))


def changes(host: GpuHost, before: int) -> list[str]:
    return [call.replace("/var/lib/bcd-hostconfig", "STATE") for call in host.calls[before:]]


def lasting(host: FakeHost) -> dict[str, Any]:
    """All that there is of holds, without the order in which events were journaled."""
    found = {}
    for path, text in files(host).items():
        event = json.loads(text) if "/events/" in path else {}
        found[path] = {key: event[key] for key in event if key != "sequence"} if event else text
    return found


# -- bind


def test_a_hold_is_bound_in_its_order() -> None:
    host = hold_host()
    gpu = uuids(host)[0]
    done = promises.check_is_truthful(
        UNIT, lambda: host, section(assign("a1", gpu, reservation_id="r1", env=["HF_HOME=/data"]))
    )
    assert (done.state, done.changed, done.failure, done.pending) == ("converged", True, None, ())
    assert changes(host, 0) == [
        "write STATE/holds/a1.json",
        "write /etc/cdi/bcd-a1.json",
        "write /run/bcd/allocations/a1.env",
        f"write STATE/events/bound-a1-1-{host.unix}.json",
        "write STATE/holds/a1.json",
    ]
    assert env(host, "a1") == (
        f"BCD_ALLOCATION_ID=a1\nBCD_RESERVATION_ID=r1\nNVIDIA_VISIBLE_DEVICES={gpu}\nHF_HOME=/data\n"
    )
    assert [device["name"] for device in spec(host, "a1")["devices"]] == [gpu]
    assert record(host, "a1") == {
        "version": 1,
        "allocation_id": "a1",
        "reservation_id": "r1",
        "binding": "BINDING_HOLD",
        "generation": 1,
        "devices": [{"id": gpu, "device_class": "gpu"}],
        "env": ["HF_HOME=/data"],
        "since": host.unix,
        "state": "bound",
    }
    assert [host.files[path.format("a1")].mode for path in (ENV, RECORD, SPEC)] == [0o644, 0o600, 0o644]
    assert done.found["held"] == ["a1"]


def test_a_second_pass_changes_nothing_and_says_nothing_again() -> None:
    host = hold_host()
    first, second = uuids(host)
    wanted = section(assign("a1", first, limits=LIMITS), assign("a2", f"{second}/s0"), assign("a3", "GPU-gone"))
    promises.go(UNIT, host, wanted)
    promises.second_pass_is_quiet(UNIT, host, wanted)
    promises.second_pass_is_quiet(UNIT, host, {**wanted, "assignments": wanted["assignments"][::-1]})


def test_a_hold_with_limits_is_bound_in_its_slice() -> None:
    host = hold_host()
    done = promises.check_is_truthful(UNIT, lambda: host, section(assign("a1", uuids(host)[0], limits=LIMITS)))
    assert done.state == "converged"
    made = host.calls.index("systemctl start bcd-alloc-a1.slice")
    assert made < host.calls.index("write /etc/cdi/bcd-a1.json")
    assert host.text(f"{slice_folder('a1')}/cpuset.cpus") == "0-3\n"
    assert spec(host, "a1")["annotations"]["bcd.dev/cgroup-parent"] == "bcd-alloc-a1.slice"
    body = json.loads(host.text(f"/var/lib/bcd-hostconfig/events/bound-a1-1-{host.unix}.json") or "")["body"]
    assert json.loads(body)["cgroup_parent"] == "bcd-alloc-a1.slice"


def test_a_kubernetes_hold_has_no_slice() -> None:
    host = hold_host()
    gpu = uuids(host)[0]
    done = go(host, assign("k1", gpu, binding=KUBERNETES, limits=LIMITS))
    assert done.state == "converged"
    assert [call for call in host.calls if call.startswith("systemctl")] == []
    assert "BCD_CGROUP_PARENT" not in (env(host, "k1") or "")
    assert spec(host, "k1")["annotations"]["bcd.dev/binding"] == "kubernetes"
    assert f"NVIDIA_VISIBLE_DEVICES={gpu}\n" in (env(host, "k1") or "")


def test_mig_instances_and_slots() -> None:
    host = hold_host()
    second = uuids(host)[1]
    mig = part(host, 0, "3g.40gb", "1g.10gb")
    card = host.machine.cards[0]
    names = [card.device_uuid(gi, ci, host.machine.branch) for gi, ci in card.devices()]
    done = go(host, assign("a1", mig[0]), assign("a2", mig[1]), assign("a3", f"{second}/s0", f"{second}/s1"))
    assert (done.state, done.found["held"]) == ("converged", ["a1", "a2", "a3"])
    assert f"NVIDIA_VISIBLE_DEVICES={names[0]}\n" in (env(host, "a1") or "")
    assert f"NVIDIA_VISIBLE_DEVICES={names[1]}\n" in (env(host, "a2") or "")
    assert f"NVIDIA_VISIBLE_DEVICES={second}\n" in (env(host, "a3") or "")
    assert [device["name"] for device in spec(host, "a3")["devices"]] == [f"{second}_s0", f"{second}_s1"]


def test_a_kill_loses_nothing() -> None:
    def machine() -> GpuHost:
        host = hold_host()
        first, second = uuids(host)
        go(host, assign("a1", first), assign("k1", f"{second}/s0", binding=KUBERNETES))
        host.calls.clear()
        return host

    first, second = uuids(hold_host())
    wanted = section(
        assign("a2", first, limits=LIMITS), assign("a3", f"{second}/s1"), assign("a4", second), generation=2
    )
    assert promises.a_kill_loses_nothing(UNIT, machine, wanted, lasting) > 20


# -- what is refused


def test_what_cannot_be_honoured_is_said_with_its_reason_and_the_rest_is_bound() -> None:
    host = hold_host(H100, H100, H100)
    first, second, third = uuids(host)
    done = go(
        host,
        assign("a1", first, binding="BINDING_INSTANCE"),
        assign("a2", second),
        {**assign("a3", "0000:3b:02.1"), "devices": [{"id": "0000:3b:02.1", "device_class": "nic.vf"}]},
        {**assign("a4", "GPU-a/x"), "devices": [{"id": "GPU-a/x", "device_class": "gpu.mig"}]},
        assign("a5", "GPU-a", f"{first}/gi1/ci0", "GPU-b/s1"),
        assign("a6", second),
        assign("a7", f"{second}/s0"),
        assign("a8", third, third),
        assign("a9", f"{third}/s60"),
        assign("b1", first, limits={"memory_bytes": 1 << 50}),
        assign("b2", third),
    )
    assert reasons(done) == {
        "a1": ("unsupported-binding", "binding BINDING_INSTANCE is not supported"),
        "a3": ("unsupported-device", "device class nic.vf cannot be held"),
        "a4": ("unsupported-device", '"GPU-a/x" is not a MIG instance id (<gpu>/gi<g>/ci<c>)'),
        "a5": (
            "device-missing",
            f"GPU-a not present; {first} has no MIG instance gi1/ci0; GPU-b not present",
        ),
        "a6": ("overlap", f"{second} is assigned to a2"),
        "a7": ("overlap", f"{second} is assigned to a2"),
        "a8": ("overlap", "a device is listed twice"),
        "a9": ("device-missing", f"{third} has no slot s60: this host has 48 a GPU"),
        # 64 GiB less 1 GiB of headroom
        "b1": (
            "resources-exhausted",
            "ResourcesExhausted: 1073741824 MiB of memory needed, 64512 MiB left on this host",
        ),
    }
    assert (done.found["held"], done.failure, done.pending) == (["a2", "b2"], None, ())
    assert sorted(events(host)) == [
        *("bound-a2-1", "bound-b2-1"),
        *(f"failed-{name}-1" for name in ("a1", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b1")),
    ]


@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        ({}, "unsupported-binding"),
        ({"binding"}, "unsupported-device"),
        ({"binding", "class"}, "device-missing"),
        ({"binding", "class", "missing"}, "overlap"),
        ({"binding", "class", "missing", "held"}, "resources-exhausted"),
    ],
)
def test_the_first_check_that_fails_decides(spoiled: set[str], reason: str) -> None:
    """Each case mends one more fault of an assignment that has them all."""
    host = hold_host()
    first, second = uuids(host)
    device = {"id": first if "held" not in spoiled else second, "device_class": "gpu"}
    devices = [device] if "missing" in spoiled else [device, {"id": "GPU-a", "device_class": "gpu"}]
    if "class" not in spoiled:
        devices.append({"id": "sda", "device_class": "disk"})
    bad = {
        **assign("a2", first, limits={"memory_bytes": 1 << 50}),
        "binding": "BINDING_HOLD" if "binding" in spoiled else "BINDING_NODE",
        "devices": devices,
    }
    assert reasons(go(host, assign("a1", first), bad))["a2"][0] == reason


def test_another_account_holds_nothing_and_writes_nothing() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first))
    host.user = 1000
    host.unreadable.update(path for path in host.files if path.startswith("/var/lib/bcd-hostconfig/"))
    before = len(host.calls)
    other = {**assign("a4", "sda"), "devices": [{"id": "sda", "device_class": "disk"}]}
    node = assign("a3", "x", binding="BINDING_NODE")
    done = go(host, assign("a1", first), assign("a2", second), node, other, generation=2)
    assert reasons(done) == {
        "a2": ("node-unprivileged", UNPRIVILEGED),
        "a3": ("unsupported-binding", "binding BINDING_NODE is not supported"),
        "a4": ("node-unprivileged", UNPRIVILEGED),  # before its device is looked at
    }
    assert (host.calls[before:], done.steps, done.found["held"]) == ([], (), ["a1"])


def test_a_failure_is_reported_once_a_generation() -> None:
    host = hold_host()
    go(host, assign("a1", "GPU-a"))
    go(host, assign("a1", "GPU-a"))
    assert events(host) == ["failed-a1-1"]
    again = go(host, assign("a1", "GPU-a"), acknowledge=["failed-a1-1"])
    assert (events(host), reasons(again)["a1"][0]) == (["failed-a1-1"], "device-missing")
    assert go(host, assign("a1", "GPU-a")).changed is False
    go(host, assign("a1", "GPU-a"), generation=2)
    assert events(host) == ["failed-a1-2"]


def test_a_vendors_specification_without_the_device_is_no_failure() -> None:
    """It may be made again: nothing is written, no event is sent, and the pass is tried again."""
    host = hold_host()
    gpu = uuids(host)[0]
    vendor = json.loads(host.text(VENDOR) or "")
    host.put(VENDOR, json.dumps({**vendor, "devices": vendor["devices"][1:]}))
    done = go(host, assign("a1", gpu, limits=LIMITS))
    assert (done.state, done.changed, done.found["failures"], host.calls) == ("progressing", False, [], [])
    assert done.failure is not None
    assert done.failure.retryable
    assert VENDOR in done.failure.message
    assert gpu in done.failure.message


def test_a_new_hold_of_a_path_that_is_gone_is_no_failure() -> None:
    """Nothing is written before a container could start; then it is bound."""
    host = hold_host()
    wanted = assign("a1", uuids(host)[0], limits=LIMITS)
    del host.files["/dev/nvidia0"]
    done = go(host, wanted)
    assert (done.state, done.changed, done.found["failures"], host.calls) == ("progressing", False, [], [])
    assert done.failure is not None
    assert done.failure.retryable
    assert f"/dev/nvidia0, which {VENDOR} names" in done.failure.message
    describe(host)
    assert (go(host, wanted).state, events(host)) == ("converged", ["bound-a1-1"])


@pytest.mark.parametrize("binding", ["BINDING_HOLD", KUBERNETES])
@pytest.mark.parametrize("limits", [{"cpus": "0-"}, {"mems": "0,"}, {"cpus": ",".join(["1"] * 600)}])
def test_a_cpulist_that_is_none_is_no_failure(limits: dict[str, Any], binding: str) -> None:
    host = hold_host()
    first, second = uuids(host)
    done = go(host, assign("a1", first, binding=binding, limits=limits), assign("a2", second))
    assert (done.state, done.found["failures"], done.found["held"]) == ("progressing", [], ["a2"])
    assert events(host) == ["bound-a2-1"]


# -- release


def test_a_hold_is_released_in_its_order() -> None:
    host = hold_host()
    go(host, assign("a1", uuids(host)[0], limits=LIMITS))
    before = len(host.calls)
    promises.check_is_truthful(UNIT, lambda: host, section(generation=2))
    assert changes(host, before) == [
        "remove /run/bcd/allocations/a1.env",
        "remove /etc/cdi/bcd-a1.json",
        f"write STATE/events/released-a1-1-{host.unix}.json",
        "systemctl stop bcd-alloc-a1.slice",
        "systemctl --no-reload revert bcd-alloc-a1.slice",
        "remove STATE/holds/a1.json",
    ]
    promises.second_pass_is_quiet(UNIT, host, section(generation=2))


def test_releases_come_before_binds_whatever_the_order() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first), assign("a2", second))
    before = len(host.calls)
    done = go(host, assign("b1", second), assign("b2", first), generation=2)
    assert (done.state, done.found["held"], done.found["failures"]) == ("converged", ["b1", "b2"], [])
    calls = changes(host, before)
    assert max(at for at, call in enumerate(calls) if call.startswith("remove STATE/holds/a")) < min(
        at for at, call in enumerate(calls) if call.startswith("write STATE/holds/b")
    )
    assert events(host) == ["bound-a1-1", "bound-a2-1", "released-a1-1", "released-a2-1", "bound-b1-2", "bound-b2-2"]


def test_kubernetes_holds_are_withdrawn_before_binds_too() -> None:
    host = hold_host(H100, H100, H100)
    first, second, third = uuids(host)
    go(host, assign("k1", first, binding=KUBERNETES), assign("a1", second))
    before = len(host.calls)
    go(host, assign("b1", third), generation=2)
    calls = changes(host, before)
    assert max(calls.index(f"remove STATE/holds/{name}.json") for name in ("a1", "k1")) < calls.index(
        "write STATE/holds/b1.json"
    )


def test_a_release_that_fails_gives_its_device_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first))

    def read_only(path: str) -> None:
        raise OSError(30, "Read-only file system", path)

    monkeypatch.setattr(host, "remove", read_only)
    done = go(host, assign("b1", first), assign("b2", second), generation=2)
    assert (done.state, done.found["held"], done.found["failures"]) == ("progressing", ["a1", "b2"], [])
    assert [(wait.reason, wait.lane) for wait in done.pending] == [("NotReady", "b1")]
    monkeypatch.undo()
    done = go(host, assign("b1", first), assign("b2", second), generation=2)
    assert (done.state, done.found["held"]) == ("converged", ["b1", "b2"])


@pytest.mark.parametrize("binding", ["BINDING_HOLD", KUBERNETES])  # the latter has no slice to be looked at again
def test_memory_that_a_release_sets_free_is_booked_in_the_sections_order(binding: str) -> None:
    host = hold_host(H100, H100, H100)
    first, second, third = uuids(host)
    go(host, assign("a1", first, limits={"memory_bytes": 40 << 30}))
    large, small = {"memory_bytes": 60 << 30}, {"memory_bytes": 20 << 30}
    done = go(
        host, assign("b1", second, limits=large), assign("b2", third, binding=binding, limits=small), generation=2
    )
    # 63 GiB are left: b1 gets 60 of them, though b2 would have fit beside a1.
    left = "ResourcesExhausted: 20480 MiB of memory needed, 3072 MiB left on this host"
    assert (done.found["held"], reasons(done)) == (["b1"], {"b2": ("resources-exhausted", left)})


def test_a_slice_with_a_workload_outlives_its_hold() -> None:
    host = hold_host()
    go(host, assign("a1", uuids(host)[0], limits=LIMITS))
    run_in(host, "a1")
    done = go(host, generation=2)
    assert (done.state, done.found["held"]) == ("converged", [])
    assert host.exists(slice_folder("a1"))
    assert go(host, generation=2).changed is False
    run_in(host, "a1", runs=False)
    assert go(host, generation=2).changed is True
    assert not host.exists(slice_folder("a1"))


# -- keep


def test_a_reboot_keeps_the_hold_and_brings_back_slice_and_env_file() -> None:
    host = hold_host()
    go(host, assign("a1", uuids(host)[0], limits=LIMITS, env=["A=1"]), acknowledge=[])
    before = env(host, "a1")
    reboot_slices(host)
    del host.files[ENV.format("a1")]
    done = go(host, assign("a1", uuids(host)[0], limits=LIMITS, env=["A=1"]), generation=9)
    assert (done.state, done.changed, env(host, "a1")) == ("converged", True, before)
    assert host.text(f"{slice_folder('a1')}/cpuset.cpus") == "0-3\n"
    assert events(host) == ["bound-a1-1"]


def test_the_vendors_new_edits_reach_a_kept_hold_without_an_event() -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0])
    go(host, wanted)
    vendor = json.loads(host.text(VENDOR) or "")
    vendor["devices"][0]["containerEdits"]["deviceNodes"] = [{"path": "/dev/nvidia7"}]
    host.put(VENDOR, json.dumps(vendor))
    host.put("/dev/nvidia7", "")
    done = go(host, wanted, generation=5)
    assert (done.state, done.changed) == ("converged", True)
    assert spec(host, "a1")["devices"][0]["containerEdits"]["deviceNodes"] == [{"path": "/dev/nvidia7"}]
    assert spec(host, "a1")["annotations"]["bcd.dev/generation"] == "1"
    assert events(host) == ["bound-a1-1"]


def test_a_kept_hold_whose_path_is_gone_waits() -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0])
    go(host, wanted)
    del host.files["/dev/nvidia0"]
    done = go(host, wanted)
    assert (done.state, done.changed, done.failure, done.found["held"]) == ("progressing", False, None, ["a1"])
    assert ["/dev/nvidia0" in wait.message for wait in done.pending] == [True]


def test_what_an_assignment_changes_waits_for_its_release() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first, env=["A=1"]))
    changed = assign("a1", second, env=["A=2"], reservation_id="r2", limits=LIMITS)
    done = go(host, changed, generation=2)
    assert (done.state, done.changed, done.found["held"]) == ("converged", False, ["a1"])
    assert ["devices, limits, env, reservation_id" in note for note in done.notes] == [True]
    assert reasons(go(host, changed, assign("a2", first), generation=2)) == {
        "a2": ("overlap", f"{first} is assigned to a1")
    }


@pytest.mark.parametrize("lost", [(RECORD,), (SPEC,), (ENV,), (SPEC, ENV), (RECORD, ENV)])
def test_a_file_that_is_lost_is_made_again(lost: tuple[str, ...]) -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0], limits=LIMITS, env=["A=1"], reservation_id="r1")
    go(host, wanted)
    whole = files(host)
    for path in lost:
        del host.files[path.format("a1")]
    done = go(host, wanted, generation=3)
    assert (done.state, done.changed, done.notes) == ("converged", True, ())
    assert {path: text for path, text in files(host).items() if "holds/" not in path} == {
        path: text for path, text in whole.items() if "holds/" not in path
    }
    since = 0 if RECORD in lost else host.unix  # which no specification tells
    assert record(host, "a1") == {**json.loads(whole[RECORD.format("a1")]), "since": since}
    assert events(host) == ["bound-a1-1"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 9}'])
@pytest.mark.parametrize("path", [RECORD, SPEC])
def test_a_file_that_is_damaged_is_made_again(path: str, text: str) -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0], env=["A=1"])
    go(host, wanted)
    whole = spec(host, "a1")
    host.put(path.format("a1"), text)
    done = go(host, wanted)
    assert (done.state, done.changed, spec(host, "a1"), done.found["held"]) == ("converged", True, whole, ["a1"])
    assert record(host, "a1")["state"] == "bound"
    assert go(host, wanted).changed is False


@pytest.mark.parametrize("path", [RECORD, SPEC])
def test_a_hold_with_one_file_is_released_with_its_event(path: str) -> None:
    host = hold_host()
    go(host, assign("a1", uuids(host)[0]))
    del host.files[path.format("a1")]
    done = go(host, generation=2, acknowledge=[f"bound-a1-1-{host.unix}"])
    assert (done.state, done.found["held"], len(events(host))) == ("converged", [], 1)
    assert events(host)[0].startswith("released-a1-1")
    assert [name for name in files(host) if "a1" in name and "events" not in name] == []


def test_killed_anywhere_the_release_of_a_hold_without_its_record_is_reported() -> None:
    """Its specification alone tells what is released, and goes before the event is journaled."""
    for at in range(1, 20):
        host = hold_host()
        go(host, assign("a1", uuids(host)[0]))
        del host.files[RECORD.format("a1")]
        host.kill_at = len(host.calls) + at
        try:
            go(host, generation=2)
        except Killed:
            host.kill_at = 0
            go(host, generation=2)
            assert [name.rpartition("-")[0] for name in events(host)][1:] == ["released-a1-1"], at
        else:
            assert at > 4
            return
    pytest.fail("a release has no end")


def test_a_file_that_others_may_write_is_made_roots_again() -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0])
    go(host, wanted)
    host.files[SPEC.format("a1")] = File(host.text(SPEC.format("a1")) or "", 0o666)
    host.files[ENV.format("a1")] = File(host.text(ENV.format("a1")) or "", 0o644, uid=1000)
    assert go(host, wanted).changed is True
    assert (host.files[SPEC.format("a1")].mode, host.files[ENV.format("a1")].uid) == (0o644, 0)
    assert go(host, wanted).changed is False


def test_a_hold_that_cannot_be_made_out_is_bound_anew_where_it_is_wanted() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first))
    host.put(RECORD.format("a1"), "{")
    host.put(SPEC.format("a1"), "{")
    done = go(host, assign("a2", second), assign("a1", first), generation=2)
    assert (done.state, done.found["held"], done.found["failures"]) == ("converged", ["a1", "a2"], [])
    assert events(host) == ["bound-a1-1", "bound-a1-2", "bound-a2-2"]


def test_a_hold_that_cannot_be_made_out_has_every_gpu_until_somebody_looks() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first))
    host.put(RECORD.format("a1"), "{")
    host.put(SPEC.format("a1"), "{")
    before = files(host)
    done = go(host, assign("a2", second), generation=2)
    assert reasons(done) == {"a2": ("overlap", f"{second} is assigned to a1")}
    assert done.failure is not None
    assert (done.failure.retryable, done.state) == (False, "failed")
    assert all(path.format("a1") in done.failure.message for path in (RECORD, SPEC))
    assert {path: text for path, text in files(host).items() if "events" not in path} == {
        path: text for path, text in before.items() if "events" not in path
    }
    done = go(host, assign("a1", "GPU-gone"), generation=3)
    assert (done.state, done.found["held"], done.found["failures"]) == ("failed", ["a1"], [])


def test_a_mig_instance_that_is_not_there_yet_keeps_its_hold() -> None:
    """MIG mode goes with a reboot, and the layout is made again before long."""
    host = hold_host()
    mig = part(host, 0, "3g.40gb")[0]
    wanted = assign("a1", mig)
    go(host, wanted)
    before = (env(host, "a1"), spec(host, "a1"))
    card = host.machine.cards[0]
    instances, card.instances, card.mig = card.instances, [], False
    host.reboot()
    host.sync()
    del host.files[ENV.format("a1")]
    done = go(host, wanted, assign("a2", uuids(host)[0]))
    assert (done.state, done.failure, (env(host, "a1"), spec(host, "a1"))) == ("progressing", None, before)
    assert ["has no MIG instance" in wait.message for wait in done.pending] == [True]
    assert reasons(done)["a2"][0] == "overlap"
    card.instances, card.mig = instances, True
    describe(host)
    assert go(host, wanted).state == "converged"


# -- without nvidia-smi


@pytest.mark.parametrize("why", ["no driver", "hangs"])
def test_without_an_answer_of_nvidia_smi_holds_stay_and_go_and_none_comes(why: str) -> None:
    host = hold_host(H100, H100, H100)
    first, second, third = uuids(host)
    kept, left = assign("a1", first, limits=LIMITS), assign("a2", second)
    go(host, kept, left)
    if why == "hangs":
        host.machine.faults.append(Fault("", do="hang"))
    else:
        host.programs["nvidia-smi"] = lambda _host, _argv: Answer(
            9,
            "NVIDIA-SMI has failed because it couldn't "
            "communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
        )
    del host.files[ENV.format("a1")]
    done = go(host, kept, assign("a3", third), assign("a4", second), generation=2)
    assert (done.state, done.failure, done.found["failures"], done.found["held"]) == ("progressing", None, [], ["a1"])
    assert {(wait.reason, wait.lane) for wait in done.pending} == {("NotReady", name) for name in ("a1", "a3", "a4")}
    assert f"NVIDIA_VISIBLE_DEVICES={first}\n" in (env(host, "a1") or "")
    assert sorted(events(host)) == ["bound-a1-1", "bound-a2-1", "released-a2-1"]


def test_what_cannot_be_held_is_said_without_an_answer_of_nvidia_smi() -> None:
    host = hold_host()
    host.machine.faults.append(Fault("", do="hang"))
    wrong = {**assign("a1", "eth0"), "devices": [{"id": "eth0", "device_class": "nic.vf"}]}
    done = go(host, wrong, assign("a2", uuids(host)[0]))
    assert reasons(done) == {"a1": ("unsupported-device", "device class nic.vf cannot be held")}
    assert [wait.lane for wait in done.pending] == ["a2"]


def test_a_gpu_that_does_not_answer_is_waited_for_and_keeps_others_from_nothing() -> None:
    host = hold_host()
    first, second = uuids(host)
    host.machine.cards[0].dead = "fields"  # [GPU is lost]
    host.sync()
    done = go(host, assign("a1", first), assign("a2", second))
    assert (done.state, done.failure, done.found["failures"], done.found["held"]) == ("progressing", None, [], ["a2"])
    assert [(wait.reason, wait.lane) for wait in done.pending] == [("NotReady", "a1")]


def test_a_gpu_that_is_off_the_bus_is_missing_and_its_hold_stands() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first))
    host.machine.cards[0].dead = "handle"
    host.sync()
    done = go(host, assign("a1", first), assign("a2", second))
    assert (done.state, done.failure, done.found["held"]) == ("progressing", None, ["a1", "a2"])
    assert [(wait.reason, wait.lane) for wait in done.pending] == [("NotReady", "a1")]
    other = hold_host()
    other.machine.cards[0].dead = "handle"
    other.sync()
    assert reasons(go(other, assign("a1", first))) == {"a1": ("device-missing", f"{first} not present")}


# -- Kubernetes


def test_a_kubernetes_hold_is_recorded_then_withdrawn_then_reported() -> None:
    host = hold_host()
    add_kubelet(host)
    go(host, assign("k1", uuids(host)[0], binding=KUBERNETES))
    before = len(host.calls)
    promises.check_is_truthful(UNIT, lambda: host, section(generation=2))
    assert changes(host, before) == [
        "write STATE/releasing.json",
        "remove /run/bcd/allocations/k1.env",
        "remove /etc/cdi/bcd-k1.json",
        "remove STATE/holds/k1.json",
        f"write STATE/events/released-k1-1-{host.unix}.json",
        "remove STATE/releasing.json",
    ]
    promises.second_pass_is_quiet(UNIT, host, section(generation=2))


def test_devices_that_pods_have_are_nobody_elses() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("k1", first, binding=KUBERNETES))
    add_kubelet(host, pod(first))
    done = go(host, assign("a1", first), assign("a2", second), generation=2)
    assert (done.found["held"], done.found["releasing"]) == (["a2"], ["k1"])
    assert reasons(done) == {"a1": ("overlap", f"{first} is assigned to k1")}
    assert done.conditions == ()
    host.unix += 301
    assert [(one.type, one.reason) for one in go(host, assign("a2", second), generation=2).conditions] == [
        ("KubernetesReleaseStuck", "PodsHoldDevices")
    ]
    add_kubelet(host)
    done = go(host, assign("a1", first), assign("a2", second), generation=3)
    assert (done.state, done.found["held"], done.found["releasing"]) == ("converged", ["a1", "a2"], [])


def test_a_hold_whose_release_is_pending_waits_for_pods_whatever_its_files_say() -> None:
    """A specification that lost its annotations tells of a plain hold, which would be reported at once."""
    host = hold_host()
    gpu = uuids(host)[0]
    add_kubelet(host, pod(gpu))
    go(host, assign("a1", gpu))
    release = {"devices": [{"id": gpu, "device_class": "gpu"}], "generation": 1, "since": host.unix, "asked": host.unix}
    host.put(RELEASING, json.dumps({"version": 1, "releases": {"a1": release}}))
    done = go(host, generation=2)
    assert (done.found["held"], done.found["releasing"], events(host)) == ([], ["a1"], ["bound-a1-1"])


def test_a_release_is_taken_back_unreported() -> None:
    host = hold_host()
    first = uuids(host)[0]
    wanted = assign("k1", first, binding=KUBERNETES)
    go(host, wanted)
    add_kubelet(host, pod(first))
    go(host, generation=2)
    done = go(host, wanted, generation=3)
    assert (done.state, done.found["held"], done.found["releasing"]) == ("converged", ["k1"], [])
    assert events(host) == ["bound-k1-1", "bound-k1-3"]


def test_an_allocation_that_comes_back_with_other_devices_waits_for_its_pods() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("k1", first, binding=KUBERNETES))
    add_kubelet(host, pod(first))
    go(host, generation=2)
    done = go(host, assign("k1", second, binding=KUBERNETES), assign("a1", first), generation=3)
    assert (done.state, done.found["held"], done.found["releasing"]) == ("progressing", [], ["k1"])
    assert [(wait.reason, wait.lane) for wait in done.pending] == [("NotReady", "k1")]
    assert reasons(done) == {"a1": ("overlap", f"{first} is assigned to k1")}
    add_kubelet(host)
    done = go(host, assign("k1", second, binding=KUBERNETES), assign("a1", first), generation=4)
    assert (done.state, done.found["held"]) == ("converged", ["a1", "k1"])


def test_releases_that_cannot_be_read_claim_every_gpu_and_are_kept() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first))
    add_kubelet(host, pod(second))
    host.put("/var/lib/bcd-hostconfig/releasing.json", "{")
    done = go(host, assign("a1", first), assign("a2", second), generation=2)
    pending = "(pending Kubernetes releases that could not be read)"
    assert reasons(done) == {"a2": ("overlap", f"{second} is assigned to {pending}")}
    assert [(one.type, one.reason) for one in done.conditions] == [
        ("KubernetesReleasesUnreadable", "ReleasesFileUnreadable")
    ]
    assert host.text(f"/var/lib/bcd-hostconfig/releasing.json.unreadable-{host.unix}") == "{"
    assert host.exists("/var/lib/bcd-hostconfig/releasing.unreadable")
    add_kubelet(host)
    done = go(host, assign("a1", first), assign("a2", second), generation=3)
    assert (done.state, done.found["held"], done.conditions) == ("converged", ["a1", "a2"], ())


def test_kubernetes_releases_survive_a_kill() -> None:
    def machine() -> GpuHost:
        host = hold_host()
        add_kubelet(host)
        first, second = uuids(host)
        go(host, assign("k1", first, binding=KUBERNETES), assign("k2", second, binding=KUBERNETES))
        host.calls.clear()
        return host

    wanted = section(assign("k2", uuids(hold_host())[1], binding=KUBERNETES), generation=2)
    assert promises.a_kill_loses_nothing(UNIT, machine, wanted, lasting) == 6


# -- virtual machines


def test_a_gpu_that_a_machine_is_to_have_is_no_holds() -> None:
    host = hold_host()
    first = uuids(host)[0]
    done = go(host, assign("a1", first), passthrough=[{"gpu": first, "instance": "vm-1"}])
    assert reasons(done) == {"a1": ("overlap", f"{first} is passed through to instance vm-1")}


def test_a_record_of_machines_that_cannot_be_read_keeps_new_holds_waiting_alone() -> None:
    host = hold_host()
    first, second = uuids(host)
    go(host, assign("a1", first))
    host.put("/var/lib/bcd-hostconfig/passthrough.json", "{")
    done = go(host, assign("a2", second), generation=2)
    assert (done.found["held"], done.found["failures"]) == ([], [])
    assert done.failure is not None
    assert "passthrough.json" in done.failure.message


# -- admission


def test_a_host_whose_memory_cannot_be_read_binds_and_says_so() -> None:
    host = hold_host()
    del host.files["/proc/meminfo"]
    done = go(host, assign("a1", uuids(host)[0], limits={"memory_bytes": 1 << 40}))
    assert done.found["held"] == ["a1"]
    said = "host memory unreadable; binding without host-side admission"
    assert [said in step.action for step in done.steps].count(True) == 1


@pytest.mark.parametrize("limits", [{"cpus": "0-3", "mems": "0"}, {"cpu_millis": 4000}])
def test_cpus_alone_are_not_admitted(limits: dict[str, Any]) -> None:
    """Neither to a host that has nothing left, nor with a word on one that does not tell."""
    host = hold_host(memory_mib=512)
    first, second = uuids(host)
    done = go(host, assign("a1", first, limits=limits), assign("a2", second, limits={"memory_bytes": 1 << 20}))
    left = "ResourcesExhausted: 1 MiB of memory needed, 0 MiB left on this host"
    assert (done.found["held"], reasons(done)) == (["a1"], {"a2": ("resources-exhausted", left)})
    silent = hold_host()
    del silent.files["/proc/meminfo"]
    done = go(silent, assign("a1", first, limits=limits))
    assert (done.found["held"], done.notes) == (["a1"], ())


def test_huge_pages_are_admitted_by_what_is_free() -> None:
    """Two of four, since one is taken and one is reserved."""
    host = hold_host()
    pool = "/sys/kernel/mm/hugepages/hugepages-1048576kB"
    for name, pages in (("nr", 4), ("free", 3), ("resv", 1)):
        host.put(f"{pool}/{name}_hugepages", f"{pages}\n")
    gpu = uuids(host)[0]
    left = "ResourcesExhausted: 8 hugepages of 1048576 KiB needed, 2 free"
    assert reasons(go(host, assign("a1", gpu, limits={"hugepages_1gi": 8}))) == {"a1": ("resources-exhausted", left)}
    assert go(host, assign("a2", gpu, limits={"hugepages_1gi": 2}), generation=2).found["held"] == ["a2"]


def test_a_kubernetes_holds_memory_counts() -> None:
    host = hold_host()
    first, second = uuids(host)
    booked = {"memory_bytes": 60 << 30}
    done = go(host, assign("k1", first, binding=KUBERNETES, limits=booked), assign("a1", second, limits=booked))
    left = "ResourcesExhausted: 61440 MiB of memory needed, 3072 MiB left on this host"
    assert reasons(done) == {"a1": ("resources-exhausted", left)}
    done = go(host, assign("k1", first, binding=KUBERNETES, limits=booked), assign("a1", second, limits={"cpus": "0"}))
    assert done.found["held"] == ["a1", "k1"]


@pytest.mark.parametrize("binding", ["BINDING_HOLD", KUBERNETES])
def test_a_lost_record_frees_no_memory(binding: str) -> None:
    host = hold_host()
    first, second = uuids(host)
    booked = {"memory_bytes": 60 << 30}
    there, more = assign("a1", first, binding=binding, limits=booked), assign("a2", second, limits=booked)
    go(host, there)
    del host.files[RECORD.format("a1")]
    done = go(host, there, {**more, "binding": KUBERNETES}, generation=2)
    left = "ResourcesExhausted: 61440 MiB of memory needed, 3072 MiB left on this host"
    assert reasons(done) == {"a2": ("resources-exhausted", left)}
    assert record(host, "a1")["limits"] == booked


def test_a_hold_that_is_bound_anew_is_not_refused_for_its_own_memory() -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0], limits={"memory_bytes": 60 << 30})
    go(host, wanted)
    for path in (RECORD, SPEC):
        host.put(path.format("a1"), "{")
    done = go(host, wanted)
    assert (done.state, done.found["held"], record(host, "a1")["state"]) == ("converged", ["a1"], "bound")


def test_a_hold_that_is_bound_anew_is_admitted_as_any_other() -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0], limits={"memory_bytes": 60 << 30})
    go(host, wanted)
    for path in (RECORD, SPEC):
        host.put(path.format("a1"), "{")
    host.put("/proc/meminfo", "MemTotal: 2097152 kB\nHugetlb: 0 kB\n")
    done = go(host, wanted)
    assert (done.state, done.changed) == ("failed", False)
    assert done.failure is not None
    assert "61440 MiB of memory needed, 1024 MiB left on this host" in done.failure.message


# -- acknowledgement


def test_events_are_kept_until_they_are_acknowledged() -> None:
    host = hold_host()
    wanted = assign("a1", uuids(host)[0])
    go(host, wanted)
    assert go(host, wanted).changed is False
    assert events(host) == ["bound-a1-1"]
    go(host, wanted, acknowledge=[f"bound-a1-1-{host.unix}", "bound-a9-1-1"])
    assert events(host) == []
    assert go(host, wanted).changed is False
    go(host, generation=2)
    assert events(host) == ["released-a1-1"]
    go(host, generation=2, acknowledge=[f"released-a1-1-{host.unix}"])
    assert events(host) == []
