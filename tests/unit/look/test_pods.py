# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a device, by a kubelet's list, its checkpoints and open device nodes: free only where all four say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet, StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import later
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.pods import pods, strangers
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Card
from tests.kubelet import pods as written
from tests.kubelet.grpc_server import Faults
from tests.kubelet.kubelet import CHECKPOINT, CLAIMS, Kubelet
from tests.kubelet.pods import Claim, Container, Pod
from tests.unit.kubelet_host import KUBELET, KubeletHost

A, B = (f"GPU-5f1c2a90-0000-4000-8000-00000000000{at}" for at in (1, 2))
MIG = "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"
CARDS = (Card(A, mig={(1, 0): MIG}), Card(B))
UID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
UNIT = f"pod{UID.replace('-', '_')}.slice"
SYSTEMD = f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-{UNIT}/cri-containerd-4f2c.scope"
NESTED = f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-{UNIT}/4f2c"
CGROUPFS = f"/kubepods/burstable/pod{UID}/4f2c"
SOCKET = f"{KUBELET}/pod-resources/kubelet.sock"


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    with Kubelet(tmp_path) as made:
        yield made


def host_of(kubelet: Kubelet | None, patience: float = 20.0) -> KubeletHost:
    host = KubeletHost(kubelet, patience=patience)
    host.gpu(0, B)
    host.gpu(1, A)  # a node's number is no index
    return host


def pod(*devices: str, uid: str = UID, kind: str = "app", name: str = "train", claims: tuple[Claim, ...] = ()) -> Pod:
    return Pod(uid, name, (Container("main", devices, kind, claims),))


def who(host: Host, device: str = A, cards: tuple[Card, ...] = CARDS) -> str:
    return pods(host, (device,), cards)[device]


# -- the four sources


def test_what_no_pod_has_is_free(kubelet: Kubelet) -> None:
    kubelet.run(pod(B))
    assert pods(host_of(kubelet), (A, f"{A}/s1", f"{A}/gi1/ci0"), CARDS) == {A: "", f"{A}/s1": "", f"{A}/gi1/ci0": ""}


def test_nobody_is_asked_where_nothing_waits(kubelet: Kubelet) -> None:
    assert pods(host_of(kubelet), ()) == {}
    assert kubelet.server.calls == []


@pytest.mark.parametrize("kind", ["app", "sidecar"])
def test_a_pod_of_the_list(kubelet: Kubelet, kind: str) -> None:
    kubelet.run(pod(A, kind=kind))
    (kubelet.folder / CHECKPOINT).unlink()
    assert who(host_of(kubelet)) == "pod team-a/train has it"


@pytest.mark.parametrize(
    ("listed", "device"),
    [(f"{A}_s3", f"{A}/s3"), (A, f"{A}/s3"), (f"{A}_gi1_ci0", f"{A}/gi1/ci0"), (MIG, f"{A}/gi1/ci0"), (f"{A}_s3", A)],
)
def test_a_part_by_what_its_plugin_calls_it(kubelet: Kubelet, listed: str, device: str) -> None:
    kubelet.run(pod(listed))
    assert who(host_of(kubelet), device) == "pod team-a/train has it"
    assert who(host_of(kubelet), f"{B}/s3") == ""


def test_an_init_container_is_in_the_checkpoint_alone(kubelet: Kubelet) -> None:
    kubelet.run(pod(A, kind="init"))
    assert who(host_of(kubelet)) == f"pod {UID} has it"


def test_the_checkpoint_s_pods_that_are_gone_have_nothing(kubelet: Kubelet) -> None:
    kubelet.run(pod(A))
    kubelet.end(UID)
    assert A in (kubelet.folder / CHECKPOINT).read_text()
    assert who(host_of(kubelet)) == ""


def test_a_kubelet_that_restarted_lists_nobody_and_its_checkpoint_does(kubelet: Kubelet) -> None:
    kubelet.run(pod(A))
    kubelet.restart(api_server=False)
    assert who(host_of(kubelet)) == f"pod {UID} has it"
    assert who(host_of(kubelet), B) == ""


@pytest.mark.parametrize("claim", [Claim("gpu.bcd.dev", "n", A.lower()), Claim("d", "n", "x", (f"bcd.dev/gpu={A}",))])
def test_a_claim_by_the_list_and_by_its_checkpoint(kubelet: Kubelet, claim: Claim) -> None:
    kubelet.run(pod(claims=(claim,)))
    assert who(host_of(kubelet)) == "pod team-a/train has it"
    kubelet.restart(api_server=False)
    assert who(host_of(kubelet)) == f"pod {UID} (claim team-a/claim) has it"
    assert who(host_of(kubelet), B) == ""
    kubelet.end(UID)
    assert who(host_of(kubelet)) == ""


def test_a_claim_of_a_pod_that_is_gone_is_over(kubelet: Kubelet) -> None:
    kubelet.run(pod(claims=(Claim("gpu.bcd.dev", "n", A.lower()),)))
    state = (kubelet.folder / CLAIMS).read_text()
    kubelet.end(UID)
    (kubelet.folder / CLAIMS).write_text(state)
    assert who(host_of(kubelet)) == ""


@pytest.mark.parametrize("cgroup", [SYSTEMD, CGROUPFS, NESTED])
def test_a_process_of_a_pod_with_the_node_open(kubelet: Kubelet, cgroup: str) -> None:
    host = host_of(kubelet)
    host.process(41, "python3", cgroup, "/dev/null", "/dev/nvidiactl", "/dev/nvidia1", "/dev/nvidia-uvm")
    assert who(host) == f"process 41 (python3) of pod {UID} has it open"
    assert who(host, f"{A}/s1") == f"process 41 (python3) of pod {UID} has it open"
    assert who(host, B) == ""


def test_processes_outside_of_pods_and_those_that_only_watch_have_nothing(kubelet: Kubelet) -> None:
    host = host_of(kubelet)
    host.process(41, "python3", "/system.slice/docker-1.scope", "/dev/nvidia1")
    host.process(42, "dcgm-exporter", SYSTEMD, "/dev/nvidia0", "/dev/nvidia1")
    host.process(43, "bash", SYSTEMD, "/dev/nvidiactl")
    assert who(host) == ""


def test_unified_memory_alone_and_a_node_that_is_no_gpu_s_may_be_any_gpu_s(kubelet: Kubelet) -> None:
    host = host_of(kubelet)
    host.process(41, "mps-client", SYSTEMD, "/dev/nvidia-uvm")
    assert who(host) == f"process 41 (mps-client) of pod {UID} has it open"
    kubelet.run(pod(B))
    assert who(host) == ""
    lost = host_of(kubelet)
    lost.process(41, "python3", SYSTEMD, "/dev/nvidia7")
    assert who(lost) == ""  # whose node is known, is not that GPU
    del lost.files["/proc/driver/nvidia/gpus/0000:11:00.0/information"]
    assert who(lost) == f"process 41 (python3) of pod {UID} has it open"


def test_a_slot_s_neighbour_has_the_gpu_open_for_its_own(kubelet: Kubelet) -> None:
    kubelet.run(pod(f"{A}_s4"))
    host = host_of(kubelet)
    host.process(41, "python3", SYSTEMD, "/dev/nvidia1", "/dev/nvidia-uvm")
    assert who(host, f"{A}/s3") == ""
    assert who(host, f"{A}/s4") == "pod team-a/train has it"
    assert who(host, A) == "pod team-a/train has it"


# -- what cannot be read counts as held


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (Faults(hang=True), "does not answer /v1.PodResourcesLister/List within 0.3 seconds"),
        (Faults(reset=2), "it reset the call with the error 2"),
        (Faults(greeting=b"nonsense!"), "it does not speak HTTP/2"),
        (Faults(cut=1), "its message is cut off"),
        (Faults(drop=True), "it closed the connection"),
    ],
)
def test_a_kubelet_that_gives_no_answer(kubelet: Kubelet, faults: Faults, said: str) -> None:
    kubelet.run(pod(B))
    kubelet.misbehave(faults)
    answer = who(host_of(kubelet, patience=0.3))
    assert answer.startswith("who has it is not known (")
    assert said in answer


def test_a_kubelet_that_is_stopped_refuses(kubelet: Kubelet) -> None:
    kubelet.stop()
    assert "Connection refused" in who(host_of(kubelet))
    kubelet.start()
    assert who(host_of(kubelet)) == ""


def test_a_kubelet_that_answers_with_a_status(kubelet: Kubelet) -> None:
    kubelet.server.handler = lambda _method, _request: (14, "the connection is draining")
    assert "gRPC status 14 (the connection is draining)" in who(host_of(kubelet))


def test_a_kubelet_that_answers_with_something_else(kubelet: Kubelet) -> None:
    kubelet.server.handler = lambda _method, _request: b"\x0a\x7f"
    assert "a protocol buffer that is cut off" in who(host_of(kubelet))


@pytest.mark.parametrize("name", [CHECKPOINT, CLAIMS])
@pytest.mark.parametrize("text", ["", "{", '{"Data": 1}'])
def test_a_damaged_checkpoint(kubelet: Kubelet, name: str, text: str) -> None:
    (kubelet.folder / name).write_text(text)
    assert f"{KUBELET}/{name} cannot be made out" in who(host_of(kubelet))


@pytest.mark.parametrize("name", [CHECKPOINT, CLAIMS])
def test_an_absent_checkpoint_has_nobody(kubelet: Kubelet, name: str) -> None:
    (kubelet.folder / name).unlink()
    assert who(host_of(kubelet)) == ""


@pytest.mark.parametrize("name", [CHECKPOINT, CLAIMS, "pods", "pod-resources/kubelet.sock"])
def test_what_root_cannot_read_counts_as_held_and_others_are_told_so(kubelet: Kubelet, name: str) -> None:
    host = host_of(kubelet)
    host.unreadable.add(f"{KUBELET}/{name}")
    assert f"{KUBELET}/{name}: Permission denied" in who(host)
    host.user = 1000
    with pytest.raises(Unreadable):
        who(host)
    with pytest.raises(NotKnownYet):
        who(PredictedHost(host))


def test_a_process_whose_files_root_cannot_see(kubelet: Kubelet) -> None:
    host = host_of(kubelet)
    host.process(41, "python3", SYSTEMD, "/dev/nvidia1")
    host.unreadable.add("/proc/41/fd")
    assert "who uses the GPUs is seen by root on the host itself" in who(host)


def test_who_is_known_to_have_it_is_named_though_a_source_fails(kubelet: Kubelet) -> None:
    kubelet.run(pod(A))
    kubelet.stop()
    assert who(host_of(kubelet)) == f"pod {UID} has it"
    assert "Connection refused" in who(host_of(kubelet), B)


def test_without_the_cards_a_mig_device_may_be_any_gpu_s(kubelet: Kubelet) -> None:
    def fail() -> tuple[Card, ...]:
        raise StepFailed("nvidia-smi hangs")

    kubelet.run(pod(MIG))
    assert who(host_of(kubelet), B) == ""
    assert who(host_of(kubelet), B, later(fail)) == "pod team-a/train has it"


def test_20_000_pods(kubelet: Kubelet) -> None:
    many = [Pod(f"uid-{at}", f"p{at}", (Container("main", (f"other-{at}",)),)) for at in range(20_000)]
    kubelet.server.handler = lambda _method, _request: written.listed([*many, pod(f"{A}_s7")])
    found = pods(host_of(kubelet), tuple(f"{A}/s{at}" for at in range(48)), CARDS)
    assert [device for device, by in found.items() if by] == [f"{A}/s7"]


# -- a host without pods


def test_a_host_that_never_had_a_kubelet_has_no_pods() -> None:
    assert who(host_of(None)) == ""
    assert strangers(host_of(None), ()) == ""


@pytest.mark.parametrize(
    "path",
    ["/usr/lib/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service", f"{KUBELET}/config.yaml"],
)
def test_a_kubelet_that_is_there_and_not_answering_has_every_device(path: str) -> None:
    host = host_of(None)
    host.put(path, "")
    assert f"{SOCKET} cannot be asked" in who(host)


def test_a_kubelet_s_program_is_a_kubelet() -> None:
    host = host_of(None)
    host.programs["kubelet"] = lambda _host, _argv: pytest.fail("it is not asked")
    assert f"{SOCKET} cannot be asked" in who(host)


@pytest.mark.parametrize(
    "cgroup", ["kubepods.slice", "kubepods", "memory/kubepods", "kubelet.slice/kubelet-kubepods.slice"]
)
def test_a_cgroup_of_pods_has_every_device_while_it_has_processes(cgroup: str) -> None:
    host = host_of(None)
    host.put(f"/sys/fs/cgroup/{cgroup}/cgroup.events", "populated 1\nfrozen 0\n")
    assert f"{SOCKET} cannot be asked" in who(host)
    host.put(f"/sys/fs/cgroup/{cgroup}/cgroup.events", "populated 0\nfrozen 0\n")
    assert who(host) == ""
    del host.files[f"/sys/fs/cgroup/{cgroup}/cgroup.events"]
    host.put(f"/sys/fs/cgroup/{cgroup}/cgroup.procs", "")  # version 1 does not say
    assert f"{SOCKET} cannot be asked" in who(host)


def test_a_kubelet_of_kubeadm_s_that_was_reset_has_no_pods() -> None:
    host = host_of(None)
    host.put("/usr/lib/systemd/system/kubelet.service", "")
    host.put("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "")
    host.programs["kubelet"] = lambda _host, _argv: pytest.fail("it is not asked")
    assert who(host) == ""
    for sign in (
        "/etc/kubernetes/kubelet.conf",
        "/etc/kubernetes/bootstrap-kubelet.conf",
        SOCKET,
        f"{KUBELET}/pods/x/y",
    ):
        host.put(sign, "")
        assert f"{SOCKET} cannot be asked" in who(host)
        del host.files[sign]


# -- strangers


def test_strangers(kubelet: Kubelet) -> None:
    host = host_of(kubelet)
    assert strangers(host, (), CARDS) == ""
    kubelet.run(pod(A, kind="init"))
    assert strangers(host, (), CARDS) == f"pod {UID} has {A}"
    assert strangers(host, (A,), CARDS) == ""
    kubelet.end(UID)
    assert strangers(host, (), CARDS) == ""
    kubelet.stop()
    assert "Connection refused" in strangers(host, (), CARDS)


def test_the_stand_in_s_files_are_json(kubelet: Kubelet) -> None:
    kubelet.run(pod(A, claims=(Claim("d", "p", "x"),)))
    for name in (CHECKPOINT, CLAIMS):
        json.loads((kubelet.folder / name).read_text())
