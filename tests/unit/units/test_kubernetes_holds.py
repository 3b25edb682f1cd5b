# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes holds from their bind to their report, with a kubelet whose socket is real, through the real runner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.holds import releasing
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT as MIG_LAYOUT
from tests.gpu.fake import GpuHost
from tests.kubelet.grpc_server import Faults
from tests.kubelet.kubelet import Kubelet
from tests.kubelet.pods import Container, Pod
from tests.unit import promises
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.hold_host import KUBELET, KUBERNETES, SOCKET, assign, events, files, go, hold_host, reasons, uuids

STATE = "/var/lib/bcd-hostconfig"
RELEASING, MARKER = f"{STATE}/releasing.json", f"{STATE}/releasing.unreadable"
UID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
START = 1_800_000_000  # of a FakeHost's clock
ONE = uuids(hold_host())[0]  # they are the same on every such host


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    with Kubelet(tmp_path) as made:
        yield made


def join(host: FakeHost, kubelet: Kubelet) -> None:
    """Show the kubelet's files as they are now, and its socket."""
    for shown in [shown for shown in host.files if shown.startswith(KUBELET + "/")]:
        del host.files[shown]
    for path in kubelet.folder.rglob("*"):
        there = f"{KUBELET}/{path.relative_to(kubelet.folder)}"
        host.put(
            there if path.is_file() or path.is_socket() else f"{there}/.", path.read_text() if path.is_file() else ""
        )
    host.servers[SOCKET] = lambda method, message: Host().unary(str(kubelet.socket), method, message, 0.5)


def holding(kubelet: Kubelet, *pods: Pod) -> tuple[GpuHost, str, str]:
    """A host of two GPUs with these pods, and its GPUs; the first is held for Kubernetes."""
    host = hold_host()
    one, two = uuids(host)
    kubelet.run(*pods)
    join(host, kubelet)
    go(host, assign("alloc_1", one, binding=KUBERNETES))
    return host, one, two


def pod(*devices: str, kind: str = "app") -> Pod:
    return Pod(UID, "train", (Container("main", devices, kind),))


def pending(host: FakeHost) -> dict[str, Any]:
    text = host.text(RELEASING)
    return {} if text is None else json.loads(text)["releases"]


def conditions(outcome: Outcome) -> list[tuple[str, str]]:
    return [(condition.type, condition.reason) for condition in outcome.conditions]


def released(host: GpuHost) -> list[str]:
    return [name for name in events(host) if name.startswith("released-")]


# -- the story


def test_recorded_withdrawn_and_reported_once_the_pod_is_gone(kubelet: Kubelet) -> None:
    host, one, _two = holding(kubelet, pod(ONE))
    waiting = go(host, generation=2)
    assert pending(host) == {
        "alloc_1": {
            "devices": [{"id": one, "device_class": "gpu"}],
            "generation": 1,
            "since": START,
            "asked": START,
        }
    }
    assert host.files[RELEASING].mode == 0o600
    assert not [path for path in files(host) if path.startswith(("/etc/cdi/bcd-", "/run/bcd/"))]
    assert f"{STATE}/holds/alloc_1.json" not in host.files
    assert (waiting.found["held"], waiting.found["releasing"]) == ([], ["alloc_1"])
    assert released(host) == []
    assert releasing(host)[0].devices == (one,)
    assert not go(host, generation=2).changed
    kubelet.end(UID)
    join(host, kubelet)
    done = go(host, generation=2)
    assert done.changed
    assert (done.found["releasing"], pending(host)) == ([], {})
    assert released(host) == ["released-alloc_1-1"]
    assert not go(host, generation=2).changed


def test_without_pods_it_is_reported_in_the_pass_that_withdraws_it(kubelet: Kubelet) -> None:
    host, _one, _two = holding(kubelet)
    go(host, generation=2)
    assert (pending(host), released(host)) == ({}, ["released-alloc_1-1"])


def test_it_is_recorded_before_anything_is_removed(kubelet: Kubelet) -> None:
    host, _one, _two = holding(kubelet, pod(ONE))
    before = len(host.calls)
    go(host, generation=2)
    calls = host.calls[before:]
    removals = [at for at, call in enumerate(calls) if call.startswith("remove ")]
    assert calls.index(f"write {RELEASING}") < min(removals)


def test_many_releases_are_recorded_in_one_write(kubelet: Kubelet) -> None:
    host = hold_host()
    one = ONE
    kubelet.run(pod(*(f"{one}_s{at}" for at in range(8))))
    join(host, kubelet)
    go(host, *(assign(f"alloc_{at}", f"{one}/s{at}", binding=KUBERNETES) for at in range(8)))
    before = len(host.calls)
    go(host, generation=2)
    assert host.calls[before:].count(f"write {RELEASING}") == 1
    assert len(pending(host)) == 8


@pytest.mark.parametrize("kind", ["app", "init", "sidecar"])
def test_until_then_nobody_gets_the_devices(kubelet: Kubelet, kind: str) -> None:
    host, one, two = holding(kubelet, pod(ONE, kind=kind))
    outcome = go(host, assign("alloc_2", one), assign("alloc_3", f"{one}/s1"), assign("alloc_4", two), generation=2)
    assert reasons(outcome) == {
        "alloc_2": ("overlap", f"{one} is assigned to alloc_1"),
        "alloc_3": ("overlap", f"{one} is assigned to alloc_1"),
    }
    assert outcome.found["held"] == ["alloc_4"]
    kubelet.end(UID)
    join(host, kubelet)
    outcome = go(host, assign("alloc_2", one), assign("alloc_4", two), generation=3)
    assert outcome.found["held"] == ["alloc_2", "alloc_4"]
    assert released(host) == ["released-alloc_1-1"]


def test_wanted_again_it_is_taken_back_unreported(kubelet: Kubelet) -> None:
    host, one, _two = holding(kubelet, pod(ONE))
    go(host, generation=2)
    assert list(pending(host)) == ["alloc_1"]
    outcome = go(host, assign("alloc_1", one, binding=KUBERNETES), generation=3)
    assert (outcome.found["held"], outcome.found["releasing"], pending(host)) == (["alloc_1"], [], {})
    assert released(host) == []
    assert not go(host, assign("alloc_1", one, binding=KUBERNETES), generation=3).changed


def test_wanted_with_other_devices_it_is_bound_once_its_pods_are_gone(kubelet: Kubelet) -> None:
    host, _one, two = holding(kubelet, pod(ONE))
    go(host, generation=2)
    other = assign("alloc_1", two, binding=KUBERNETES)
    outcome = go(host, other, generation=3)
    assert (outcome.found["held"], outcome.found["releasing"]) == ([], ["alloc_1"])
    assert reasons(outcome) == {}, "what may pass is no failure"
    assert outcome.pending, "it says what it waits for"
    assert outcome.state == "progressing"
    assert not go(host, other, generation=3).changed
    kubelet.end(UID)
    join(host, kubelet)
    outcome = go(host, other, generation=3)
    assert (outcome.found["held"], outcome.found["releasing"]) == (["alloc_1"], [])
    assert released(host) == ["released-alloc_1-1"]


def test_stuck_after_five_minutes(kubelet: Kubelet) -> None:
    host, one, _two = holding(kubelet, pod(ONE))
    assert conditions(go(host, generation=2)) == []
    host.unix = START + 300
    assert conditions(go(host, generation=2)) == []
    host.unix = START + 301
    stuck = go(host, generation=2)
    assert conditions(stuck) == [("KubernetesReleaseStuck", "PodsHoldDevices")]
    assert "alloc_1" in stuck.conditions[0].message
    assert f"{one} (pod team-a/train has it)" in stuck.conditions[0].message
    assert not stuck.changed
    kubelet.end(UID)
    join(host, kubelet)
    assert conditions(go(host, generation=2)) == []


@pytest.mark.parametrize("fault", ["restart", "stop", "hang", "status", "checkpoint", "claims"])
def test_a_kubelet_that_does_not_tell_keeps_the_claim(kubelet: Kubelet, fault: str) -> None:
    host, _one, _two = holding(kubelet, pod(ONE))
    if fault != "restart":  # whose checkpoint shows the pod that the list lacks
        kubelet.end(UID)
        join(host, kubelet)
    if fault == "restart":
        kubelet.restart(api_server=False)
    elif fault == "stop":
        kubelet.stop()
    elif fault == "hang":
        kubelet.misbehave(Faults(hang=True))
    elif fault == "status":
        kubelet.server.handler = lambda _method, _request: (14, "draining")
    else:
        name = {"checkpoint": "device-plugins/kubelet_internal_checkpoint", "claims": "dra_manager_state"}[fault]
        host.put(f"{KUBELET}/{name}", "{")
    outcome = go(host, generation=2)
    assert (outcome.found["releasing"], released(host)) == (["alloc_1"], [])
    if fault == "stop":
        kubelet.start()
        assert go(host, generation=2).found["releasing"] == []


def test_a_host_without_a_kubelet_reports_at_once() -> None:
    host = hold_host()
    one = ONE
    go(host, assign("alloc_1", one, binding=KUBERNETES))
    go(host, generation=2)
    assert (pending(host), released(host)) == ({}, ["released-alloc_1-1"])


# -- a releases file that cannot be read


def test_a_damaged_file_is_kept_and_every_gpu_claimed(kubelet: Kubelet) -> None:
    host = hold_host()
    one, two = uuids(host)
    kubelet.run(pod(one))
    join(host, kubelet)
    host.files[RELEASING] = File("{ \udcff", 0o600)
    outcome = go(host, assign("alloc_1", two))
    kept = f"{RELEASING}.unreadable-{START}"
    assert host.files[kept] == File("{ \udcff", 0o600)
    assert RELEASING not in host.files
    assert host.files[MARKER].mode == 0o600
    holder = "(pending Kubernetes releases that could not be read)"
    assert reasons(outcome) == {"alloc_1": ("overlap", f"{two} is assigned to {holder}")}
    assert conditions(outcome) == [("KubernetesReleasesUnreadable", "ReleasesFileUnreadable")]
    assert f"pod team-a/train has {one}" in outcome.conditions[0].message
    assert releasing(host)[0].fault.startswith(MARKER)
    again = go(host, assign("alloc_1", two))
    assert not again.changed
    assert conditions(again) == [("KubernetesReleasesUnreadable", "ReleasesFileUnreadable")]
    kubelet.end(UID)
    join(host, kubelet)
    outcome = go(host, assign("alloc_1", two), generation=2)
    assert MARKER not in host.files
    assert host.files[kept] == File("{ \udcff", 0o600)
    assert (conditions(outcome), outcome.found["held"]) == ([], ["alloc_1"])


def test_the_pods_of_allocations_that_are_known_keep_no_marker(kubelet: Kubelet) -> None:
    host, one, _two = holding(kubelet, Pod("other", "web", (Container("main", ("eth0",)),)))
    kubelet.run(pod(one))
    join(host, kubelet)
    host.files[RELEASING] = File("", 0o600)
    outcome = go(host, assign("alloc_1", one, binding=KUBERNETES))
    assert (MARKER in host.files, conditions(outcome), outcome.found["held"]) == (False, [], ["alloc_1"])


def test_an_operator_may_remove_the_marker(kubelet: Kubelet) -> None:
    host = hold_host()
    one, two = uuids(host)
    kubelet.run(pod(one))
    join(host, kubelet)
    host.files[RELEASING] = File("[]", 0o600)
    go(host)
    assert MARKER in host.files
    del host.files[MARKER]
    outcome = go(host, assign("alloc_1", two))
    assert (conditions(outcome), outcome.found["held"]) == ([], ["alloc_1"])


def test_a_file_of_which_no_byte_is_read_is_moved(kubelet: Kubelet) -> None:
    def move(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        host.unreadable.discard(argv[1])
        host.files[argv[2]] = host.files.pop(argv[1])
        return Answer(0, "")

    host = hold_host()
    kubelet.run(pod(ONE))
    join(host, kubelet)
    host.put(RELEASING, "of which nothing is read")
    host.unreadable.add(RELEASING)
    host.programs["mv"] = move
    outcome = go(host)
    assert MARKER in host.files
    assert host.text(f"{RELEASING}.unreadable-{START}") == "of which nothing is read"
    assert conditions(outcome) == [("KubernetesReleasesUnreadable", "ReleasesFileUnreadable")]
    assert not go(host).changed


def test_new_releases_are_recorded_beside_those_that_were_lost(kubelet: Kubelet) -> None:
    host = hold_host()
    one, two = uuids(host)
    kubelet.run(pod(one), Pod("other", "web", (Container("main", (two,)),)))
    join(host, kubelet)
    go(host, assign("alloc_1", one, binding=KUBERNETES))
    host.put(RELEASING, "{")
    outcome = go(host, generation=2)
    assert list(pending(host)) == ["alloc_1"]
    assert MARKER in host.files, "the other pod's GPU is of an allocation that nobody knows"
    assert outcome.found["releasing"] == ["alloc_1"]


# -- a pass that dies


def claims_of(host: FakeHost, gpu: str) -> bool:
    """Whether anything claims the GPU, as every other unit sees it."""
    from ansible_collections.bettercompute.bcd.plugins.module_utils.look.clients import claimed
    from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.holds import has

    return any(has(hold, gpu) for hold in claimed(host))


def test_what_a_killed_pass_left_to_withdraw_is_withdrawn_before_it_is_reported(kubelet: Kubelet) -> None:
    """No pod has a device: the plugins must not advertise what is reported free."""
    host, _one, _two = holding(kubelet)
    host.kill_at = len(host.calls) + 2  # the release is recorded, and no more
    with pytest.raises(Killed):
        go(host, generation=2)
    host.kill_at = 0
    assert (list(pending(host)), "/etc/cdi/bcd-alloc_1.json" in host.files) == (["alloc_1"], True)
    before = len(host.calls)
    go(host, generation=2)
    order = ["/run/bcd/allocations/", "/etc/cdi/bcd-", f"{STATE}/holds/", f"{STATE}/events/released-", RELEASING]
    done = host.calls[before:]
    at = [next(at for at, call in enumerate(done) if path in call) for path in order]
    assert at == sorted(at), done


@pytest.mark.parametrize("text", [None, "{"])
def test_killed_anywhere_the_claim_is_never_lost_and_the_next_pass_ends_as_one_would(
    kubelet: Kubelet, text: str | None
) -> None:
    def machine() -> GpuHost:
        host = hold_host()
        join(host, kubelet)
        if text is None:
            go(host, assign("alloc_1", ONE, binding=KUBERNETES))
        else:
            host.files[RELEASING] = File(text, 0o600)
        host.calls.clear()
        return host

    kubelet.run(pod(ONE))
    whole = machine()
    go(whole, generation=2)
    steps = len(whole.calls)
    assert steps > 2
    for at in range(1, steps + 1):
        host = machine()
        host.kill_at = at
        with pytest.raises(Killed):
            go(host, generation=2)
        host.kill_at = 0
        assert claims_of(host, ONE), f"killed at {at}: {host.calls}"
        go(host, generation=2)
        assert files(host) == files(whole), f"killed at {at}"
        assert not go(host, generation=2).changed


def test_killed_anywhere_a_release_is_reported_once(kubelet: Kubelet) -> None:
    def machine() -> GpuHost:
        host = hold_host()
        join(host, kubelet)
        go(host, assign("alloc_1", ONE, binding=KUBERNETES))
        host.calls.clear()
        return host

    whole = machine()
    go(whole, generation=2)
    for at in range(1, len(whole.calls) + 1):
        host = machine()
        host.kill_at = at
        with pytest.raises(Killed):
            go(host, generation=2)
        host.kill_at = 0
        go(host, generation=2)
        assert released(host) == ["released-alloc_1-1"]
        assert files(host) == files(whole), f"killed at {at}"


def test_check_mode_says_what_a_pass_then_does(kubelet: Kubelet) -> None:
    host, _one, _two = holding(kubelet)
    planned = go(host, generation=2, check=True)
    real = go(host, generation=2)
    assert [line.action for line in planned.steps] == [line.action for line in real.steps]


# -- what else touches a GPU


def test_the_layout_of_a_gpu_waits_for_its_pending_release_and_for_lost_ones(kubelet: Kubelet) -> None:
    host, one, two = holding(kubelet, pod(ONE))
    go(host, generation=2)
    layout = {"gpus": [{"select": {"uuid": gpu}, "layout": "all-1g.10gb"} for gpu in (one, two)]}
    waiting = promises.go(MIG_LAYOUT, host, layout)
    assert [wait.reason for wait in waiting.pending] == ["Busy"]
    assert f"the allocation alloc_1 has {one}" in waiting.pending[0].message
    assert (host.machine.cards[0].mig, host.machine.cards[1].mig) == (False, True)
    host.put(MARKER, "")
    del host.files[RELEASING]
    lost = promises.go(MIG_LAYOUT, host, layout)
    assert [wait.reason for wait in lost.pending] == ["Busy"]
    assert MARKER in lost.pending[0].message
    kubelet.end(UID)
    join(host, kubelet)
    go(host, generation=2)
    assert promises.go(MIG_LAYOUT, host, layout).pending == ()
    assert host.machine.cards[0].mig is True
