# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member of the stand-in cluster stays one: labels, taints, kubelet, certificate, Node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Taint
from tests.cluster.control_plane import Cluster
from tests.cluster.worker import CERTIFICATE, FLAGS
from tests.gpu.model import Machine
from tests.unit import promises
from tests.unit.kube_host import KubeHost
from tests.unit.member_host import MEMBER, member, record, verbs

DAY = 86_400
GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")
OLD = Taint("old", "", "NoExecute")


@pytest.fixture(scope="module")
def served() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(served: Cluster) -> Cluster:
    """As new: nothing of an earlier test is left."""
    served.start()
    served.faults.__init__()  # type: ignore[misc]
    served.certificates_until = None
    return served


def go(host: KubeHost, **given: Any) -> Outcome:
    return promises.go(MEMBER, host, host.settings(**given))


def quiet(host: KubeHost, **given: Any) -> Outcome:
    return promises.second_pass_is_quiet(MEMBER, host, host.settings(**given))


def said(outcome: Outcome) -> str:
    """All that it waits for and what failed, in one text."""
    failed = [outcome.failure.message] if outcome.failure else []
    return "; ".join([*failed, *(wait.message for wait in outcome.pending)])


# -- labels


def test_labels_are_kept_by_the_kubelets_own_credentials(cluster: Cluster) -> None:
    host = member(cluster, labels={"pool": "a"})
    assert go(host, labels={"pool": "a"}).changed is False
    cluster.admin("kubectl label node gpu-01 pool=b admins=x bcd.dev/stale=y")
    cluster.requests.clear()
    after = go(host, labels={"pool": "a"})
    assert (after.state, after.changed) == ("converged", True)
    assert cluster.labels("gpu-01") == {"pool": "a", "admins": "x"}
    assert {request.split()[0] for request in cluster.requests if "/api/v1/nodes/gpu-01" in request} == {"GET", "PATCH"}
    assert quiet(host, labels={"pool": "a"}).conditions == ()


def test_a_label_that_leaves_the_settings_goes_and_none_of_others(cluster: Cluster) -> None:
    host = member(cluster, labels={"pool": "a", "rack": "7"})
    cluster.admin("kubectl label node gpu-01 admins=x")
    assert go(host, labels={"pool": "b"}).state == "converged"
    assert cluster.labels("gpu-01") == {"pool": "b", "admins": "x"}
    assert record(host).labels == {"pool": "b"}
    quiet(host, labels={"pool": "b"})


@pytest.mark.parametrize("labels", [{"pool": "b", "zone": "1"}, {}])
def test_check_mode_tells_of_labels_what_is_then_done(cluster: Cluster, labels: dict[str, str]) -> None:
    settings = member(cluster).settings(labels=labels, taints=["old:NoExecute"])
    real = promises.check_is_truthful(MEMBER, lambda: member(cluster, labels={"pool": "a", "rack": "7"}), settings)
    assert real.state == "converged"


def test_a_pass_that_dies_leaves_no_label_behind(cluster: Cluster) -> None:
    settings = member(cluster).settings(labels={"pool": "b", "zone": "1"})
    changes = promises.a_kill_loses_nothing(
        MEMBER,
        lambda: member(cluster, labels={"pool": "a", "rack": "7"}),
        settings,
        lambda host: (cluster.labels("gpu-01"), record(host)),  # type: ignore[arg-type]
    )
    assert changes >= 3  # a record, the labels, the record


def test_a_label_that_was_set_by_a_pass_that_died_goes_when_it_is_not_wanted_any_more(cluster: Cluster) -> None:
    host = member(cluster)
    host.kill_at = 3  # the record of applied units, our record; then kubectl
    with pytest.raises(BaseException, match="kubectl"):
        go(host, labels={"pool": "a"})
    host.kill_at = 0
    cluster.admin("kubectl label node gpu-01 pool=a")  # as the kubectl that went on without us
    assert go(host).state == "converged"
    assert (cluster.labels("gpu-01"), record(host).labels) == ({}, {})


def test_what_the_machine_is_becomes_labels_and_stays_where_it_is_not_told(cluster: Cluster) -> None:
    machine = Machine.from_products(["H100-80GB"] * 2, "550.163.01")
    host = member(cluster, machine=machine)
    goal = Goal(MEMBER, host.settings(), Given(node_id="node 7", site="fra"))
    assert converge(goal, host, Records(host)).state == "converged"
    ours = {
        "bcd.dev/node-id": "node-7",
        "bcd.dev/site": "fra",
        "bcd.dev/gpu.count": "2",
        "bcd.dev/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "bcd.dev/gpu.driver": "550.163.01",
    }
    assert cluster.labels("gpu-01") == ours
    quiet(host)  # a run that was told neither the node's id nor its site
    assert cluster.labels("gpu-01") == ours
    assert not any(asked[0] == "nvidia-smi" for asked in host.asked)


# -- taints


def test_taints_that_differ_are_told_and_the_printed_command_ends_it(cluster: Cluster) -> None:
    host = member(cluster, taints=(OLD,))
    wanted = ["nvidia.com/gpu=present:NoSchedule"]
    assert go(host, taints=["old:NoExecute"]).conditions == ()
    outcome = go(host, taints=wanted)
    assert (outcome.state, outcome.changed, outcome.pending) == ("converged", False, ())
    (condition,) = outcome.conditions
    assert (condition.type, condition.status, condition.reason) == ("KubernetesTaintsDrift", "true", "NodeRestriction")
    assert quiet(host, taints=wanted).conditions == (condition,)
    assert cluster.admin(condition.message.partition(" runs ")[2]) == "node/gpu-01 tainted"
    assert cluster.taints("gpu-01") == wanted
    after = go(host, taints=wanted)
    assert (after.conditions, record(host).taints) == ((), (GPU,))
    quiet(host, taints=wanted)


def test_a_taint_that_only_leaves_the_settings_is_told_too(cluster: Cluster) -> None:
    host = member(cluster, taints=(GPU, OLD))
    outcome = go(host, taints=["nvidia.com/gpu=present:NoSchedule"])
    (condition,) = outcome.conditions
    command = "kubectl taint node gpu-01 nvidia.com/gpu=present:NoSchedule old:NoExecute- --overwrite"
    assert condition.message.endswith(f" runs {command}")
    (last,) = go(host).conditions
    command = "kubectl taint node gpu-01 nvidia.com/gpu:NoSchedule- old:NoExecute- --overwrite"
    assert last.message.endswith(f" runs {command}")
    assert cluster.admin(command) == "node/gpu-01 untainted"
    assert (go(host).conditions, cluster.taints("gpu-01")) == ((), [])


def test_taints_of_the_controllers_are_no_drift(cluster: Cluster) -> None:
    cluster.faults.not_ready = True
    host = member(cluster)
    outcome = go(host)
    assert (outcome.state, outcome.changed, outcome.conditions) == ("converged", False, ())
    assert "the node gpu-01 is not Ready yet" in outcome.notes[0]


# -- the kubelet


def test_a_kubelet_that_was_stopped_or_disabled_runs_again_and_at_boot(cluster: Cluster) -> None:
    host = member(cluster)
    host.stop_kubelet()
    host.programs["systemctl"](host, ("systemctl", "disable", "kubelet.service"))
    outcome = go(host)
    assert (outcome.state, outcome.changed) == ("converged", True)
    assert promises.lines(outcome) == ["enable kubelet.service", "start kubelet.service"]
    assert (host.kubelet, host.worker.is_enabled()) == ("active", True)
    quiet(host)


def test_check_mode_tells_of_the_kubelet_what_is_then_done(cluster: Cluster) -> None:
    def stopped() -> KubeHost:
        host = member(cluster)
        host.stop_kubelet()
        return host

    settings = member(cluster).settings(labels={"pool": "a"})
    assert promises.check_is_truthful(MEMBER, stopped, settings).state == "converged"
    promises.a_kill_loses_nothing(MEMBER, stopped, settings, lambda _host: cluster.labels("gpu-01"))


def test_a_kubelet_that_does_not_stay_up_is_told_with_its_last_words_until_the_cause_is_gone(cluster: Cluster) -> None:
    host = member(cluster)
    flags = host.text(FLAGS) or ""
    host.put(FLAGS, 'KUBELET_KUBEADM_ARGS="--node-labels=node-role.kubernetes.io/gpu="\n')
    host.stop_kubelet()
    for _pass in range(2):
        outcome = go(host, labels={"pool": "a"})
        assert (outcome.state, outcome.failure) == ("progressing", None)
        assert "unknown 'kubernetes.io' or 'k8s.io' labels specified" in said(outcome)
        assert cluster.labels("gpu-01") == {"pool": "a"}  # its Node is kept all the same
    quiet(host, labels={"pool": "a"})
    host.put(FLAGS, flags)
    host.tick()  # systemd starts it again and again
    assert go(host, labels={"pool": "a"}).state == "converged"


# -- its certificate


@pytest.mark.parametrize("text", [None, ""])
def test_a_member_whose_certificate_is_over_or_gone_is_reported_and_never_joined_again(
    cluster: Cluster, text: str | None
) -> None:
    host = member(cluster)
    host.links.pop(CERTIFICATE)
    if text is None:
        host.put(CERTIFICATE, cluster.issue("gpu-01", host.unix - 5 * DAY))
    host.stop_kubelet()
    calls = len(host.calls)
    asked = len(host.asked)
    outcome = go(host, labels={"pool": "a"})
    assert (outcome.state, outcome.changed) == ("failed", False)
    assert outcome.failure is not None
    assert outcome.failure.retryable is False
    assert ("ended 5 days ago" if text is None else "is not there") in outcome.failure.message
    assert "state: absent" in outcome.failure.message
    assert [call for call in host.calls[calls:] if "applied.json" not in call] == []
    assert not any(argv[0] == "GET" for argv in host.asked[asked:])
    assert host.kubelet == "inactive"
    host.put(CERTIFICATE, cluster.issue("gpu-01"))  # an admin has put another one there
    assert go(host, labels={"pool": "a"}).state == "converged"


def test_a_certificate_that_is_not_renewed_is_a_note(cluster: Cluster) -> None:
    host = member(cluster)
    host.links.pop(CERTIFICATE)
    host.put(CERTIFICATE, cluster.issue("gpu-01", host.unix + 3 * DAY + 60))
    outcome = go(host)
    assert (outcome.state, outcome.changed) == ("converged", False)
    assert "ends in 3 days and was not renewed" in outcome.notes[0]


# -- its Node


def test_a_label_that_left_the_settings_goes_again_when_the_kubelet_has_set_it_at_its_start(cluster: Cluster) -> None:
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    host = member(cluster, labels={zone: "a", "pool": "a"})

    def labels() -> dict[str, str]:
        found: dict[str, str] = cluster.nodes["gpu-01"]["metadata"]["labels"]
        return found

    assert go(host).state == "converged"
    assert zone not in labels()
    labels()[region] = "theirs"
    host.boot()
    assert labels()[zone] == "a"
    again = go(host)
    assert (again.state, again.changed, zone in labels(), labels()[region]) == ("converged", True, False, "theirs")
    quiet(host)
    labels()[zone] = "b"  # no value of the join's: somebody else's
    quiet(host)


def test_a_zone_of_somebody_elses_join_stays(cluster: Cluster) -> None:
    host = member(cluster, ours=False, labels={"topology.kubernetes.io/zone": "a"})
    assert go(host).changed is False
    assert cluster.nodes["gpu-01"]["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"


def test_a_node_that_an_admin_deleted_is_registered_again(cluster: Cluster) -> None:
    host = member(cluster, labels={"pool": "a"})
    cluster.delete_node("gpu-01")
    outcome = go(host, labels={"pool": "b"})
    assert (outcome.state, outcome.changed) == ("converged", True)
    assert cluster.labels("gpu-01") == {"pool": "b"}
    quiet(host, labels={"pool": "b"})


def test_check_mode_knows_no_labels_before_the_node_is_there(cluster: Cluster) -> None:
    def alone() -> KubeHost:
        host = member(cluster)
        cluster.delete_node("gpu-01")
        return host

    settings = member(cluster).settings(labels={"pool": "a"})
    assert promises.check_is_truthful(MEMBER, alone, settings).state == "converged"


def test_a_node_that_is_not_registered_again_is_waited_for_and_the_kubelet_restarted_once_in_a_boot(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = member(cluster)
    monkeypatch.setattr(host, "sleep", lambda seconds: KubeHost.sleep(host, 10 * seconds))
    cluster.delete_node("gpu-01")
    cluster.faults.no_registration = True
    restarts = "systemctl restart kubelet.service"
    for _pass in range(3):
        outcome = go(host, labels={"pool": "a"})
        assert outcome.state == "progressing"
        assert "has no node gpu-01, though kubelet.service was started again" in said(outcome)
    assert host.calls.count(restarts) == 1
    cluster.faults.no_registration = False
    host.tick()
    assert go(host, labels={"pool": "a"}).state == "converged"
    assert cluster.labels("gpu-01") == {"pool": "a"}


@pytest.mark.parametrize("fault", ["away", "status", "unknown"])
def test_an_api_server_that_does_not_tell_holds_up_the_labels_alone(cluster: Cluster, fault: str) -> None:
    host = member(cluster)
    host.stop_kubelet()
    if fault == "away":
        cluster.stop()
    elif fault == "status":
        cluster.faults.status = 500
    else:
        cluster.faults.status = 403
    outcome = go(host, labels={"pool": "a"})
    assert (outcome.state, outcome.failure) == ("progressing", None)
    assert [wait.reason for wait in outcome.pending] == ["NotReady"]
    assert {"away": "Connection refused", "status": "500", "unknown": "403"}[fault] in said(outcome)
    assert host.kubelet == "active"
    assert verbs(host) == []
    cluster.faults.status = 0
    cluster.start()
    assert go(host, labels={"pool": "a"}).state == "converged"


def test_a_member_that_somebody_else_joined_is_kept_without_a_record(cluster: Cluster) -> None:
    host = member(cluster, ours=False)
    outcome = go(host, labels={"pool": "a"})
    assert outcome.state == "converged"
    assert host.text("/var/lib/bcd-hostconfig/k8s-join.json") is None
    quiet(host, labels={"pool": "a"})
