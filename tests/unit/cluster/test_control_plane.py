# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's control plane lets a kubelet do what a real one does, by what NodeRestriction was seen to answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import der
from tests.cluster.control_plane import Cluster, signature
from tests.cluster.wire import Client, Reply, Unreached

MERGE = "application/merge-patch+json"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """With gpu-01 and another Node."""
    with Cluster() as made:
        made.node("gpu-01", {"kubernetes.io/hostname": "gpu-01", "team": "ml"})
        made.node("other-01")
        yield made


def kubelet(cluster: Cluster, name: str = "gpu-01", **more: Any) -> Client:
    """A kubelet's way to its server."""
    return Client(cluster.url, cluster.ca, cluster.issue(name, **more))


def label(cluster: Cluster, **labels: str | None) -> Reply:
    """Labels with `__` for the slash and `_` for dots."""
    named = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return patch(cluster, {"metadata": {"labels": named}})


def patch(cluster: Cluster, body: dict[str, Any], name: str = "gpu-01") -> Reply:
    return kubelet(cluster).call("PATCH", f"/api/v1/nodes/{name}", body, MERGE)


def test_a_kubelet_reads_its_own_node_and_no_other(cluster: Cluster) -> None:
    own = kubelet(cluster).call("GET", "/api/v1/nodes/gpu-01")
    assert (own.code, own.body["kind"], own.body["metadata"]["labels"]["team"]) == (200, "Node", "ml")
    other = kubelet(cluster).call("GET", "/api/v1/nodes/other-01")
    assert (other.code, other.reason) == (403, "Forbidden")
    assert "node 'gpu-01' cannot read 'other-01', only its own Node object" in other.message
    assert kubelet(cluster).call("GET", "/api/v1/nodes").code == 403
    assert kubelet(cluster, "gone-01").call("GET", "/api/v1/nodes/gone-01").code == 404


def test_it_deletes_no_node(cluster: Cluster) -> None:
    said = kubelet(cluster).call("DELETE", "/api/v1/nodes/gpu-01")
    assert (said.code, "gpu-01" in cluster.nodes) == (403, True)


@pytest.mark.parametrize(
    "key",
    [
        "bcd.dev/gpu.count",
        "nvidia.com/gpu.present",
        "plain",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/anything",
        "x.node.kubernetes.io/anything",
        "kubelet.kubernetes.io/anything",
        "x.kubelet.kubernetes.io/anything",
    ],
)
def test_labels_that_a_kubelet_may_set(cluster: Cluster, key: str) -> None:
    said = patch(cluster, {"metadata": {"labels": {key: "v"}}})
    assert (said.code, cluster.nodes["gpu-01"]["metadata"]["labels"][key]) == (200, "v")


@pytest.mark.parametrize(
    "key",
    [
        "node-restriction.kubernetes.io/x",
        "a.node-restriction.kubernetes.io/x",
        "node-role.kubernetes.io/gpu",
        "kubernetes.io/x",
        "something.kubernetes.io/x",
        "k8s.io/x",
        "something.k8s.io/x",
        "topology.kubernetes.io/rack",
    ],
)
def test_one_that_it_may_not_set_fails_the_whole_request(cluster: Cluster, key: str) -> None:
    said = patch(cluster, {"metadata": {"labels": {key: "v", "good": "v"}}})
    assert said.code == 403
    assert said.message == f'nodes "gpu-01" is forbidden: is not allowed to modify labels: {key}'
    assert cluster.labels("gpu-01") == {"team": "ml"}


def test_labels_come_and_go(cluster: Cluster) -> None:
    assert label(cluster, bcd_dev__site="x", team=None).code == 200
    assert cluster.labels("gpu-01") == {"bcd.dev/site": "x"}


@pytest.mark.parametrize("value", ["NVIDIA H100 80GB", "x" * 64, "-x", "x-", "a,b", "a=b"])
def test_values_that_no_label_has(cluster: Cluster, value: str) -> None:
    said = label(cluster, product=value)
    assert (said.code, said.reason, "product" in cluster.labels("gpu-01")) == (422, "Invalid", False)


def test_no_taint_is_a_kubelets(cluster: Cluster) -> None:
    cluster.admin("kubectl taint node gpu-01 a=b:NoSchedule")
    for taints in ([], [{"key": "a", "value": "c", "effect": "NoSchedule"}]):
        said = patch(cluster, {"spec": {"taints": taints}, "metadata": {"labels": {"good": "v"}}})
        assert (said.code, said.message) == (
            403,
            'nodes "gpu-01" is forbidden: node "gpu-01" is not allowed to modify taints',
        )
    assert (cluster.taints("gpu-01"), cluster.labels("gpu-01")) == (["a=b:NoSchedule"], {"team": "ml"})


def test_it_may_cordon_itself_and_the_controllers_taint_shows_it(cluster: Cluster) -> None:
    assert patch(cluster, {"spec": {"unschedulable": True}}).code == 200
    assert cluster.nodes["gpu-01"]["spec"]["unschedulable"] is True
    keys = [taint["key"] for taint in cluster.nodes["gpu-01"]["spec"]["taints"]]
    assert keys == ["node.kubernetes.io/unschedulable"]
    assert patch(cluster, {"spec": {"unschedulable": None}}).code == 200
    assert cluster.nodes["gpu-01"]["spec"]["taints"] == []


def test_another_node_is_not_its_to_change(cluster: Cluster) -> None:
    said = patch(cluster, {"metadata": {"labels": {"a": "b"}}}, "other-01")
    assert (said.code, cluster.labels("other-01")) == (403, {})


def test_pods_by_the_field_selector_alone(cluster: Cluster) -> None:
    cluster.pod("mine", "gpu-01")
    cluster.pod("theirs", "other-01")
    assert kubelet(cluster).call("GET", "/api/v1/pods").code == 403
    listed = kubelet(cluster).call("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dgpu-01").body["items"]
    assert [pod["metadata"]["name"] for pod in listed] == ["mine"]
    path = "/api/v1/namespaces/default/pods/mine"
    assert kubelet(cluster).call("POST", f"{path}/eviction", {"kind": "Eviction"}).code == 201
    assert kubelet(cluster).call("GET", path).code == 403  # of what is gone
    assert kubelet(cluster).call("POST", "/api/v1/namespaces/default/pods/theirs/eviction", {}).code == 403
    owner = kubelet(cluster).call("GET", "/apis/apps/v1/namespaces/kube-system/daemonsets/proxy")
    assert (owner.code, 'cannot get resource "daemonsets" in API group "apps"' in owner.message) == (403, True)


# -- who asks


def test_a_certificate_that_is_over_is_nobody(cluster: Cluster) -> None:
    said = kubelet(cluster, not_after=int(time.time()) - 60).call("GET", "/api/v1/nodes/gpu-01")
    assert (said.code, said.message) == (401, "Unauthorized")


def test_without_a_certificate_only_cluster_info_is_shown(cluster: Cluster) -> None:
    anybody = Client(cluster.url, cluster.ca)
    assert anybody.call("GET", CLUSTER_INFO).code == 200
    assert anybody.call("GET", "/api/v1/nodes/gpu-01").code == 403
    assert Client(cluster.url, cluster.ca, token="abcdef.0000000000000000").call("GET", "/api/v1/nodes/x").code == 401


def test_its_server_is_known_by_its_authority(cluster: Cluster) -> None:
    with Cluster() as other, pytest.raises(Unreached, match="x509: certificate signed by unknown authority"):
        Client(cluster.url, other.ca).call("GET", CLUSTER_INFO)


def test_cluster_info_is_signed_with_each_token(cluster: Cluster) -> None:
    cluster.token("abcdef.0123456789abcdef")
    cluster.token("ghijkl.0123456789abcdef")
    data = Client(cluster.url, cluster.ca).call("GET", CLUSTER_INFO).body["data"]
    assert data["jws-kubeconfig-abcdef"] == signature(data["kubeconfig"], "abcdef", "0123456789abcdef")
    assert {*data} == {"kubeconfig", "jws-kubeconfig-abcdef", "jws-kubeconfig-ghijkl"}
    cluster.expire("ghijkl.0123456789abcdef")
    assert "jws-kubeconfig-ghijkl" not in Client(cluster.url).call("GET", CLUSTER_INFO).body["data"]


def test_a_signature_is_a_detached_hs256() -> None:
    """The value is that of `printf %s HEADER.PAYLOAD | openssl dgst -sha256 -mac hmac -macopt key:SECRET`."""
    head, empty, tail = signature("text", "abcdef", "0123456789abcdef").split(".")
    assert (head, empty, len(tail)) == ("eyJhbGciOiAiSFMyNTYiLCAia2lkIjogImFiY2RlZiJ9", "", 43)
    assert tail == EXPECTED_TAIL


EXPECTED_TAIL = "uu63bQboJcgNPVGip5zmJXDN2pyRNIllTK30OcV31_U"


def test_the_pin_is_the_digest_of_the_public_key(cluster: Cluster) -> None:
    """As `openssl x509 -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256` has it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    loaded = x509.load_pem_x509_certificate(cluster.ca.encode())
    key = loaded.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(key)
    assert cluster.pin == digest.finalize().hex()
    mine = x509.load_pem_x509_certificate(cluster.issue("gpu-01", 1_900_000_000).encode())
    raw = mine.public_bytes(serialization.Encoding.DER)
    assert (der.common_name(raw), der.not_after(raw)) == ("system:node:gpu-01", 1_900_000_000)


# -- what goes wrong


def test_faults_come_and_go(cluster: Cluster) -> None:
    cluster.faults.status = 500
    assert kubelet(cluster).call("GET", "/api/v1/nodes/gpu-01").code == 500
    cluster.faults.status = 0
    cluster.faults.hang = True
    with pytest.raises(Unreached, match="context deadline exceeded"):
        kubelet(cluster)._replace(timeout=0.3).call("GET", "/api/v1/nodes/gpu-01")
    cluster.faults.hang = False
    cluster.stop()
    with pytest.raises(Unreached, match="connect: connection refused"):
        kubelet(cluster).call("GET", "/api/v1/nodes/gpu-01")
    cluster.start()
    assert kubelet(cluster).call("GET", "/api/v1/nodes/gpu-01").code == 200


# -- the admin


def test_the_admin_sets_changes_and_removes_taints(cluster: Cluster) -> None:
    cluster.admin("kubectl taint node gpu-01 a=b:NoSchedule c:NoExecute")
    assert cluster.taints("gpu-01") == ["a=b:NoSchedule", "c:NoExecute"]
    with pytest.raises(ValueError, match="--overwrite is false"):
        cluster.admin("kubectl taint node gpu-01 a=x:NoSchedule")
    cluster.admin("kubectl taint node gpu-01 a=x:NoSchedule c:NoExecute- d=e:PreferNoSchedule --overwrite")
    assert cluster.taints("gpu-01") == ["a=x:NoSchedule", "d=e:PreferNoSchedule"]
    cluster.admin("kubectl taint node gpu-01 --overwrite d-")
    assert cluster.taints("gpu-01") == ["a=x:NoSchedule"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("kubectl taint node gpu-01 a=b:Bogus", "invalid taint effect: Bogus"),
        ("kubectl taint node gpu-01 gone:NoSchedule-", 'taint "gone:NoSchedule" not found'),
        ("kubectl taint node gpu-01", "at least one taint update is required"),
        ("kubectl taint node nobody a=b:NoSchedule", 'nodes "nobody" not found'),
        ("kubeadm taint node gpu-01 a=b:NoSchedule", "does not know"),
    ],
)
def test_what_kubectl_does_not_take_from_the_admin(cluster: Cluster, line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        cluster.admin(line)


def test_the_admin_deletes_a_node(cluster: Cluster) -> None:
    cluster.admin("kubectl delete node gpu-01")
    assert {*cluster.nodes} == {"other-01"}
