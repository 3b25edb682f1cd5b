# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What k8s-join refuses before anything is written: machines that are somebody else's, and clusters that root does not
allow."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_entry import CA, CLIENT, KUBELET_PKI, OTHERS
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    BOOTSTRAP,
    CONTROL_PLANE,
    KUBELET_CONF,
    KUBELET_CONFIG,
)
from tests.cluster.control_plane import Cluster
from tests.unit.kube_host import KubeHost, allowed
from tests.unit.kube_passes import NODE, joins, message, passed

NEEDED = "joining a Kubernetes cluster needs [kubernetes] allowed_clusters in bcd's config"


def refused(host: KubeHost, **more: Any) -> str:
    """The message of a refusal that wrote nothing, in check mode too."""
    files = dict(host.files)
    said = [_refused(host, files, check, more) for check in (True, False)]
    assert said[0] == said[1]
    return said[0]


def _refused(host: KubeHost, files: dict[str, File], check: bool, more: dict[str, Any]) -> str:
    done = passed(host, check=check, **more)
    assert done.failure is not None
    assert (done.failure.reason, done.failure.retryable, done.state) == ("Refused", False, "failed")
    assert (done.steps, host.calls, host.files) == ((), [], files)
    return message(done)


def hostname(name: str) -> Callable[[KubeHost], None]:
    return lambda host: host.put("/proc/sys/kernel/hostname", f"{name}\n")


def has(path: str) -> Callable[[KubeHost], None]:
    return lambda host: host.put(path, "")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (has(CONTROL_PLANE), ("control plane", CONTROL_PLANE)),
        *((has(f"{path}/x"), ("another distribution", path)) for path in OTHERS[:-1]),
        (has(OTHERS[-1]), ("another distribution", OTHERS[-1])),
        (has(CA), ("did not make", CA, "kubeadm reset")),
        (has(BOOTSTRAP), ("did not make", BOOTSTRAP)),
        (has(KUBELET_CONFIG), ("did not make", KUBELET_CONFIG, "kubeadm reset")),  # as of a kubelet without a cluster
        (has(f"{KUBELET_PKI}/{CLIENT}-current.pem"), ("did not make", CLIENT)),
        (hostname("gpu@01"), ("gpu@01", "hostnamectl")),
        (hostname("x" * 64), ("64 characters", "at most 63")),
        (
            has("/etc/bcd/config.toml"),
            (NEEDED,),
        ),
    ],
)
def test_it_is_refused(cluster: Cluster, wrong: Callable[[KubeHost], None], words: tuple[str, ...]) -> None:
    host = KubeHost(cluster)
    wrong(host)
    said = refused(host)
    assert [word for word in words if word not in said] == []


def test_without_a_configuration_of_root_s_nothing_is_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    del host.files["/etc/bcd/config.toml"]
    assert NEEDED in refused(host)


def test_a_malformed_entry_stops_a_member_too(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    assert passed(host).state == "converged"
    text = host.text("/etc/bcd/config.toml") or ""
    host.put("/etc/bcd/config.toml", text.replace('"https', '"http://x,https'))
    assert "'http://x'" in message(passed(host, ""))


def test_labels_and_taints_are_judged_before_anything_is_written(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    assert "node-role.kubernetes.io/worker" in refused(host, labels={"node-role.kubernetes.io/worker": ""})
    assert "Bogus" in refused(host, taints=["a:Bogus"])


def test_a_cluster_that_root_does_not_allow_is_not_joined(cluster: Cluster) -> None:
    with Cluster() as other:
        host = KubeHost(cluster, files=allowed(other))
        said = refused(host)
    assert f"{cluster.url}#sha256:{cluster.pin}" in said


def test_a_member_of_another_cluster_is_never_reset(cluster: Cluster) -> None:
    with Cluster() as other:
        host = KubeHost(cluster)
        assert host.join_by_hand(other).rc == 0
        before = host.text(KUBELET_CONF)
        said = refused(host)
        assert [word for word in (other.url, other.pin, cluster.pin, "kubeadm reset") if word not in said] == []
    assert (host.text(KUBELET_CONF), joins(host)) == (before, 0)


def test_a_member_that_joined_under_another_name_is_told_both(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    assert passed(host).state == "converged"
    hostname("gpu-02")(host)
    done = passed(host, "")
    assert done.failure is not None
    assert (done.failure.reason, joins(host)) == ("Refused", 1)
    assert [word for word in (NODE, "gpu-02", "hostnamectl") if word not in message(done)] == []


def test_what_is_left_of_a_membership_that_is_over_is_told_as_that(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    assert passed(host).state == "converged"
    del host.files[KUBELET_CONF]  # by hand, and pods may run all the same
    before = dict(host.files)
    done = passed(host)
    assert done.failure is not None
    assert (done.failure.reason, joins(host), host.files) == ("Refused", 1, before)
    assert [word for word in ("did not make", "of a membership", CA, "kubeadm reset") if word in message(done)] == [
        "of a membership",
        CA,
        "kubeadm reset",
    ]


def test_a_name_of_capitals_and_underscores_is_made_one_of_a_node(cluster: Cluster) -> None:
    host = KubeHost(cluster, name="GPU_01")
    assert passed(host).state == "converged"
    assert NODE in cluster.nodes
    assert passed(host, "").changed is False


def test_a_kubelet_conf_that_nobody_can_read_is_not_replaced(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    host.put(KUBELET_CONF, "")
    assert KUBELET_CONF in refused(host)


def test_rivals_among_other_units_are_told(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    host.put(
        "/var/lib/bcd-hostconfig/applied.json",
        '{"version": 1, "units": {"sysctl": {"net.ipv4.ip_forward": 0}}}',
    )
    assert "net.ipv4.ip_forward" in refused(host)
