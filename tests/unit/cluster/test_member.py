# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member of the stand-in cluster: its kubelet over restarts, kubectl with its credentials, and kubeadm reset."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

from tests.cluster import worker as at
from tests.cluster.control_plane import Cluster
from tests.cluster.kubeadm import Answer, kubeadm
from tests.cluster.kubectl import kubectl
from tests.unit.kube_host import KubeHost

ETCD = "/var/lib/etcd/somebody-elses"
CNI = "/etc/cni/net.d/87-podman.conflist"
RESET = "kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock"
KEEP_ETCD = "--skip-phases=remove-etcd-member"


@pytest.fixture
def member() -> Iterator[KubeHost]:
    """gpu-01, joined by hand with a label and a taint."""
    with Cluster("1.31.14") as cluster:
        yield joined(KubeHost(cluster))


def joined(host: KubeHost) -> KubeHost:
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    arguments = [{"name": "node-labels", "value": "team=ml"}]
    assert host.join_by_hand(taints=taints, kubeletExtraArgs=arguments).rc == 0
    return host


def run(host: KubeHost, line: str, stdin: str = "") -> Answer:
    words = tuple(shlex.split(line))
    return kubeadm(host.worker, words, stdin) if words[0] == "kubeadm" else kubectl(host.worker, words)


def ctl(host: KubeHost, line: str) -> Answer:
    return run(host, f"kubectl --kubeconfig {at.KUBELET_CONF} --request-timeout=10s {line}")


# -- the kubelet


def test_labels_and_taints_are_of_the_first_registration(member: KubeHost) -> None:
    cluster = member.cluster
    cluster.admin("kubectl taint node gpu-01 dedicated-")
    cluster.admin("kubectl label node gpu-01 team=other")
    member.start_kubelet()
    assert (cluster.labels("gpu-01"), cluster.taints("gpu-01")) == ({"team": "other"}, [])


@pytest.mark.parametrize(
    ("key", "synced"),
    [("kubernetes.io/hostname", True), ("kubernetes.io/os", True), ("kubernetes.io/arch", True), ("team", False)],
)
def test_a_kubelet_that_starts_mends_only_its_own_labels(member: KubeHost, key: str, synced: bool) -> None:
    labels = member.cluster.nodes["gpu-01"]["metadata"]["labels"]
    value, labels[key] = labels[key], "changed"
    member.start_kubelet()
    assert member.cluster.nodes["gpu-01"]["metadata"]["labels"][key] == (value if synced else "changed")


def test_a_node_that_an_admin_deleted_comes_back_with_what_the_kubelet_was_given(member: KubeHost) -> None:
    member.cluster.delete_node("gpu-01")
    member.start_kubelet()
    assert member.cluster.labels("gpu-01") == {"team": "ml"}
    assert member.cluster.taints("gpu-01") == ["dedicated=ml:NoSchedule"]


def test_it_needs_a_certificate_that_is_alive_or_a_token(member: KubeHost) -> None:
    member.put(member.links[at.CERTIFICATE], member.cluster.issue("gpu-01", member.time() - 60))
    member.start_kubelet()
    assert member.kubelet == "activating"
    assert f"stat {at.BOOTSTRAP_CONF}: no such file or directory" in member.journal[-1]


def test_under_another_host_name_it_is_not_let_in(member: KubeHost) -> None:
    member.put("/proc/sys/kernel/hostname", "renamed\n")
    member.start_kubelet()
    assert "renamed" not in member.cluster.nodes
    assert 'node "gpu-01" is not allowed to modify node "renamed"' in member.journal[-1].replace("\\", "")


def test_a_reboot_starts_it_only_where_it_is_enabled(member: KubeHost) -> None:
    member.boot()
    assert member.kubelet == "inactive"
    member.programs["systemctl"](member, ("systemctl", "enable", "--no-reload", "kubelet.service"))
    member.boot()
    assert member.kubelet == "active"


def test_without_a_configuration_it_is_started_again_and_again() -> None:
    with Cluster() as cluster:
        host = KubeHost(cluster)
        host.start_kubelet()
        assert host.kubelet == "activating"
        assert f"open {at.CONFIG}: no such file or directory" in host.journal[-1]
        answer = host.programs["systemctl"](host, ("systemctl", "is-active", "kubelet.service"))
        assert (answer.rc, answer.out) == (3, "activating\n")


# -- kubectl


def test_label(member: KubeHost) -> None:
    assert ctl(member, "label node gpu-01 bcd.dev/site=x team- --overwrite").out == "node/gpu-01 labeled\n"
    assert member.cluster.labels("gpu-01") == {"bcd.dev/site": "x"}
    again = ctl(member, "label node gpu-01 bcd.dev/site=x")
    assert (again.rc, again.out) == (0, "node/gpu-01 not labeled\n")
    gone = ctl(member, "label node gpu-01 team-")
    assert (gone.rc, gone.out) == (0, 'label "team" not found.\nnode/gpu-01 not labeled\n')


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("label node gpu-01 team=other", "'team' already has a value (ml), and --overwrite is false"),
        ("label node gpu-01 good=x kubernetes.io/bad=y", '(Forbidden): nodes "gpu-01" is forbidden: is not allowed'),
        ("label node other-01 good=x", "node 'gpu-01' cannot read 'other-01', only its own Node object"),
    ],
)
def test_label_fails(member: KubeHost, words: str, complaint: str) -> None:
    member.cluster.node("other-01")
    said = ctl(member, words)
    assert (said.rc, complaint in said.err, member.cluster.labels("gpu-01")) == (1, True, {"team": "ml"})


def test_get(member: KubeHost) -> None:
    said = ctl(member, "get node gpu-01 -o json")
    assert json.loads(said.out)["metadata"]["labels"]["team"] == "ml"
    assert ctl(member, "get pods").rc == 1
    assert ctl(member, "get pods -o json --field-selector spec.nodeName=gpu-01").rc == 0


def test_cordon_and_uncordon(member: KubeHost) -> None:
    assert ctl(member, "cordon gpu-01").out == "node/gpu-01 cordoned\n"
    assert ctl(member, "cordon gpu-01").out == "node/gpu-01 already cordoned\n"
    assert member.cluster.nodes["gpu-01"]["spec"]["unschedulable"] is True
    assert ctl(member, "uncordon gpu-01").out == "node/gpu-01 uncordoned\n"


def test_drain_evicts_and_then_may_not_look(member: KubeHost) -> None:
    member.cluster.pod("web", "gpu-01")
    member.cluster.pod("agent", "gpu-01", owner="DaemonSet")
    owned = ctl(member, "drain gpu-01 --ignore-daemonsets")  # it looks for the DaemonSet, and evicts nothing
    assert (owned.rc, 'cannot get resource "daemonsets"' in owned.err, len(member.cluster.pods)) == (1, True, 2)
    said = ctl(member, "drain gpu-01 '--pod-selector=!pod-template-generation'")
    assert (said.rc, "evicting pod default/web" in said.out, "is forbidden" in said.err) == (1, True, True)
    assert {*member.cluster.pods} == {("default", "agent")}
    assert ctl(member, "drain gpu-01 '--pod-selector=!pod-template-generation'").rc == 0


def test_without_a_server_or_with_dead_credentials(member: KubeHost) -> None:
    member.cluster.stop()
    refused = ctl(member, "label node gpu-01 a=b")
    assert refused.rc == 1
    assert f"The connection to the server 127.0.0.1:{member.cluster.port} was refused" in refused.err
    member.cluster.start()
    member.put(member.links[at.CERTIFICATE], member.cluster.issue("gpu-01", 1_600_000_000))
    assert "You must be logged in to the server (Unauthorized)" in ctl(member, "label node gpu-01 a=b").err


# -- kubeadm reset


@pytest.mark.parametrize("version", ["1.28.15", "1.31.14", "1.36.2"])
def test_reset_takes_the_membership_and_leaves_what_is_not_its_own(version: str) -> None:
    with Cluster(version) as cluster:
        member = KubeHost(cluster, version=version)
        assert member.join_by_hand().rc == 0
        member.put(f"{at.KUBELET}/pods/1/x", "")
        member.programs["systemctl"](member, ("systemctl", "enable", "--no-reload", "kubelet.service"))
        assert run(member, f"{RESET} {KEEP_ETCD}").rc == 0
        mine = (at.KUBERNETES + "/", at.KUBELET + "/")
        assert [path for path in {*member.files, *member.links} if path.startswith(mine)] == []
        assert (member.text(ETCD), member.text(CNI)) == ("data", "{}")
        assert (member.kubelet, member.removed_pods) == ("inactive", 1)
        assert member.services.enabled("kubelet.service")
        assert "gpu-01" in cluster.nodes


def test_reset_empties_the_folder_of_an_etcd_that_is_somebody_elses(member: KubeHost) -> None:
    assert run(member, RESET).rc == 0
    assert member.text(ETCD) is None


def test_reset_asks_first(member: KubeHost) -> None:
    before = dict(member.files)
    said = run(member, RESET.replace(" --force", ""))
    assert (said.rc, member.files, member.kubelet) == (1, before, "active")


@pytest.mark.parametrize(("version", "survives"), [("1.28.15", False), ("1.31.14", True), ("1.36.2", True)])
def test_a_mount_that_stays_is_deleted_through_by_old_kubeadm(version: str, survives: bool) -> None:
    with Cluster(version) as cluster:
        member = KubeHost(cluster, version=version)
        assert member.join_by_hand().rc == 0
        place = f"{at.KUBELET}/pods/1/volumes/nfs"
        member.put(f"{place}/precious", "data")
        member.mount(place, stuck=True)
        said = run(member, f"{RESET} {KEEP_ETCD}")
        assert (said.rc == 1) is survives
        assert (member.text(f"{place}/precious") == "data") is survives
        assert (at.KUBELET_CONF in member.files) is survives


def test_after_a_reset_the_machine_joins_again(member: KubeHost) -> None:
    run(member, f"{RESET} {KEEP_ETCD}")
    taken = member.join_by_hand()
    assert 'a Node with name "gpu-01" and status "Ready" already exists' in taken.err
    run(member, f"{RESET} {KEEP_ETCD}")
    member.cluster.delete_node("gpu-01")
    assert joined(member).cluster.labels("gpu-01") == {"team": "ml"}
