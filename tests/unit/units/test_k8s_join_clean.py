# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member of the stand-in cluster is handed back: what is in the way, what goes, what stays, and where a pass dies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    CONTROL_PLANE,
    KUBELET_CONF,
    RECORD,
)
from tests.cluster.control_plane import Cluster
from tests.cluster.worker import CA, CERTIFICATE
from tests.unit import promises
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.kube_host import KubeHost
from tests.unit.member_host import MEMBER, member, verbs

VOLUME = "/var/lib/kubelet/pods/1f2e/volumes/kubernetes.io~nfs/data"
EMPTIED = (KUBELET_CONF, CA, "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env", RECORD)
STAYS = ("/var/lib/etcd/somebody-elses", "/etc/cni/net.d/87-podman.conflist")


@pytest.fixture(scope="module")
def served() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(served: Cluster) -> Cluster:
    """As new: nothing of an earlier test is left."""
    served.start()
    served.faults.__init__()  # type: ignore[misc]
    return served


def leave(host: KubeHost) -> Outcome:
    return promises.go(MEMBER, host, None)


def shown(host: FakeHost) -> tuple[object, ...]:
    """What a machine shows that is handed back, or is not."""
    assert isinstance(host, KubeHost)
    files = [path for path in (*EMPTIED, *STAYS) if host.exists(path)]
    return (
        files,
        host.kubelet,
        host.worker.is_enabled(),
        bool(host.cluster.nodes["gpu-01"]["spec"].get("unschedulable")),
    )


GONE = (list(STAYS), "inactive", False, True)


# -- all goes well


def test_a_join_of_ours_is_taken_back_and_nothing_else(cluster: Cluster) -> None:
    host = member(cluster)
    promises.go(MEMBER, host, host.settings())
    cluster.pod("db", "gpu-01", owner="StatefulSet")
    cluster.pod("bare", "gpu-01", owner="")
    cluster.pod("proxy", "gpu-01", "kube-system", "DaemonSet")
    outcome = leave(host)
    assert (outcome.state, outcome.changed, outcome.failure, outcome.pending) == ("converged", True, None, ())
    assert shown(host) == GONE
    assert verbs(host) == ["kubectl drain", "kubeadm reset"]
    assert list(cluster.pods) == [("kube-system", "proxy")]
    assert "gpu-01" in cluster.nodes  # which no node may delete
    assert "kubectl delete node gpu-01" in outcome.notes[0]
    assert cluster.admin("kubectl delete node gpu-01") == 'node "gpu-01" deleted'
    again = promises.second_pass_is_quiet(MEMBER, host, None)
    assert (again.state, again.notes) == ("converged", ())


@pytest.mark.parametrize("pods", [(), ("db",)])
def test_check_mode_tells_what_is_then_done(cluster: Cluster, pods: tuple[str, ...]) -> None:
    def machine() -> KubeHost:
        host = member(cluster)
        for name in pods:
            cluster.pod(name, "gpu-01")
        return host

    assert promises.check_is_truthful(MEMBER, machine, None).state == "converged"


def test_the_next_pass_goes_on_wherever_one_dies(cluster: Cluster) -> None:
    def machine() -> KubeHost:
        host = member(cluster)
        cluster.pod("db", "gpu-01")
        return host

    changes = promises.a_kill_loses_nothing(MEMBER, machine, None, shown)
    assert changes >= 4  # evicted, reset, disabled, forgotten
    host = machine()
    leave(host)
    assert shown(host) == GONE


def half_reset(host: KubeHost) -> None:
    """As a reset leaves it that lost power after it had begun to delete."""
    host.stop_kubelet()
    for path in (KUBELET_CONF, "/var/lib/kubelet/config.yaml"):
        host.worker.remove(path)


def reset_by_hand(host: KubeHost) -> None:
    argv = ("kubeadm", "reset", "--force", "--skip-phases=remove-etcd-member")
    assert host.programs["kubeadm"](host, argv).rc == 0
    host.typed.clear()


@pytest.mark.parametrize(("before", "ran"), [(half_reset, ["kubeadm reset"]), (reset_by_hand, [])])
def test_a_machine_that_is_half_way_out_is_taken_all_the_way(
    cluster: Cluster, before: Callable[[KubeHost], None], ran: list[str]
) -> None:
    host = member(cluster)
    before(host)
    assert leave(host).state == "converged"
    assert verbs(host) == ran
    assert shown(host)[:3] == GONE[:3]


def test_a_reset_that_changes_nothing_is_no_success(cluster: Cluster) -> None:
    host = member(cluster)
    host.programs["kubeadm"] = lambda _host, _argv: Answer(0, "")
    outcome = leave(host)
    assert outcome.failure is not None
    assert "done without effect" in outcome.failure.message
    assert host.text(RECORD) is not None


# -- what is not ours


def test_a_membership_of_others_stays(cluster: Cluster) -> None:
    host = member(cluster, ours=False)
    before = shown(host)
    outcome = leave(host)
    assert (outcome.state, outcome.changed) == ("converged", False)
    assert "was not joined by us, so it is not reset" in outcome.notes[0]
    assert (shown(host), verbs(host)) == (before, [])


def test_a_machine_that_has_joined_another_cluster_since_is_refused(cluster: Cluster) -> None:
    host = member(cluster)
    record = json.loads(host.text(RECORD) or "")
    host.put(RECORD, json.dumps({**record, "ca_cert_sha256": "f" * 64}))
    refused(host, f"sha256:{cluster.pin}")


def test_a_control_plane_is_refused(cluster: Cluster) -> None:
    host = member(cluster)
    host.put(CONTROL_PLANE, "kind: Pod\n")
    refused(host, "runs a control plane")


def refused(host: KubeHost, why: str) -> None:
    files, calls = dict(host.files), list(host.calls)
    outcome = leave(host)
    assert (outcome.state, outcome.failure and outcome.failure.reason) == ("failed", "Refused")
    assert outcome.failure is not None
    assert why in outcome.failure.message
    assert (host.files, host.calls) == (files, calls)
    assert verbs(host) == []


# -- what is in the way


SPEC = {
    "cdiVersion": "0.6.0",
    "kind": "bcd.dev/gpu",
    "devices": [{"name": "GPU-1", "annotations": {"bcd.dev/device-id": "GPU-5f1c2a90-0000-4000-8000-000000000001"}}],
}
RELEASES = {"version": 1, "releases": {"alloc_2": {"devices": [{"id": "GPU-5f1c2a90-0000-4000-8000-000000000001"}]}}}


@pytest.mark.parametrize(
    ("path", "content", "who"),
    [
        ("/etc/cdi/bcd-alloc_1.json", SPEC, "the allocation alloc_1 has GPU-5f1c2a90"),
        ("/var/lib/bcd-hostconfig/releasing.json", RELEASES, "the allocation alloc_2 has GPU-5f1c2a90"),
    ],
)
def test_allocations_keep_the_machine_until_they_are_released(
    cluster: Cluster, path: str, content: object, who: str
) -> None:
    host = member(cluster)
    host.put(path, json.dumps(content))
    before = shown(host)
    outcome = leave(host)
    assert (outcome.state, outcome.changed) == ("progressing", False)
    assert [wait.reason for wait in outcome.pending] == ["Busy"]
    assert who in outcome.pending[0].message
    assert (shown(host), verbs(host)) == (before, [])
    del host.files[path]
    assert leave(host).state == "converged"
    assert shown(host) == GONE


def test_data_that_is_mounted_below_the_kubelets_folder_is_never_reset_away(cluster: Cluster) -> None:
    host = member(cluster)
    host.mount("/var/lib/kubelet/pods/1f2e/volumes/kubernetes.io~projected/token", "tmpfs")
    host.mount(VOLUME, "nfs4", stuck=True)
    host.put(f"{VOLUME}/precious", "data")
    for _pass in range(2):
        outcome = leave(host)
        assert outcome.failure is not None
        assert outcome.failure.retryable is False
        assert f"{VOLUME} (nfs4) is still mounted" in outcome.failure.message
        assert "projected" not in outcome.failure.message
        assert "kubeadm reset" not in verbs(host)
        assert host.text(f"{VOLUME}/precious") == "data"
    host.stuck.clear()
    assert host.worker.unmount(VOLUME)
    assert leave(host).state == "converged"
    assert shown(host) == GONE


def test_a_mount_that_goes_with_its_pod_is_in_nobodys_way(cluster: Cluster) -> None:
    def machine() -> KubeHost:
        host = member(cluster)
        cluster.pod("db", "gpu-01")
        host.mount(VOLUME, "nfs4")
        kubectl = host.programs["kubectl"]

        def evicts(here: FakeHost, argv: tuple[str, ...]) -> Answer:
            answer = kubectl(here, argv)
            host.worker.unmount(VOLUME)  # as the kubelet does with the volumes of a pod that is gone
            return answer

        host.programs["kubectl"] = evicts
        return host

    host = machine()
    assert leave(host).state == "converged"
    assert shown(host) == GONE
    promises.check_is_truthful(MEMBER, machine, None)


def test_a_pod_that_cannot_be_evicted_is_told_and_keeps_nothing(cluster: Cluster) -> None:
    host = member(cluster)
    cluster.pod("db", "gpu-01")
    real = host.programs["kubectl"]

    def guarded(here: FakeHost, argv: tuple[str, ...]) -> Answer:
        if "drain" not in argv:
            return real(here, argv)
        host.typed.append(argv)
        return Answer(
            1, "", "error when evicting pods: Cannot evict pod as it would violate the pod's disruption budget."
        )

    host.programs["kubectl"] = guarded
    outcome = leave(host)
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert verbs(host) == ["kubectl drain", "kubeadm reset"]
    assert shown(host)[:3] == GONE[:3]
    assert any("though default/db could not be evicted" in line for line in promises.lines(outcome))


def test_an_eviction_that_fails_keeps_nothing(cluster: Cluster) -> None:
    host = member(cluster)
    real = host.programs["kubectl"]
    host.programs["kubectl"] = lambda here, argv: Answer(127, "", "gone") if "drain" in argv else real(here, argv)
    assert leave(host).failure is None
    assert verbs(host) == ["kubeadm reset"]
    assert shown(host)[:3] == GONE[:3]
    assert leave(host).state == "converged"


# -- a cluster that is away, a kubelet that is dead


def test_a_cluster_that_is_away_keeps_nothing(cluster: Cluster) -> None:
    host = member(cluster)
    cluster.stop()
    outcome = leave(host)
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert verbs(host) == ["kubeadm reset"]
    assert shown(host)[:3] == GONE[:3]
    assert "Connection refused" in promises.lines(outcome)[0]


def test_a_member_whose_certificate_is_over_is_taken_back(cluster: Cluster) -> None:
    host = member(cluster)
    host.links.pop(CERTIFICATE)
    host.put(CERTIFICATE, cluster.issue("gpu-01", host.unix - 86_400))
    host.stop_kubelet()
    assert leave(host).state == "converged"
    assert verbs(host) == ["kubeadm reset"]
    assert shown(host)[:3] == GONE[:3]


# -- and back


def test_a_removal_that_did_not_end_is_taken_back_when_the_unit_is_wanted_again(cluster: Cluster) -> None:
    host = member(cluster)
    host.kill_at = 3  # the debts, the eviction, then the reset
    with pytest.raises(Killed):
        leave(host)
    host.kill_at = 0
    if not cluster.nodes["gpu-01"]["spec"].get("unschedulable"):
        raise AssertionError(host.calls)
    assert promises.go(MEMBER, host, host.settings()).state == "converged"
    assert not cluster.nodes["gpu-01"]["spec"].get("unschedulable")
    promises.second_pass_is_quiet(MEMBER, host, host.settings())
