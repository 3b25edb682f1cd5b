# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k8s-join on members of a cluster whose kubelets take their cgroups from cgroupfs, as older ones were made."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import KUBELET_CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kubelet_cgroups import takes_cgroupfs
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.control_plane import Cluster
from tests.unit.container_host import CONFIG
from tests.unit.kube_host import KubeHost
from tests.unit.kube_passes import NODE, message, passed
from tests.unit.promises import second_pass_is_quiet


@pytest.fixture
def older(cluster: Cluster) -> Cluster:
    cluster.kubelet_config["cgroupDriver"] = "cgroupfs"
    return cluster


def systemd_of_runc(host: KubeHost) -> Any:
    return host.cri()["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"]


def containerds(host: KubeHost) -> dict[str, str]:
    return {path: file.text for path, file in host.files.items() if path.startswith("/etc/containerd")}


def test_containerd_is_not_changed_under_its_pods_and_the_rest_is_kept(older: Cluster) -> None:
    host = KubeHost(older)
    host.put(CONFIG, "version = 2\n")
    host.join_by_hand()
    assert "cgroupDriver: cgroupfs" in (host.text(KUBELET_CONFIG) or "")
    files = containerds(host)
    done = passed(host, labels={"tier": "gpu"})
    said = message(done)
    assert f"from cgroupfs ({KUBELET_CONFIG})" in said
    assert "drain the node, set cgroupDriver to systemd in that file" in said
    assert done.failure is not None
    assert not done.failure.retryable
    assert (containerds(host), host.restarts, systemd_of_runc(host)) == (files, [], False)
    assert older.labels(NODE)["tier"] == "gpu"
    assert passed(host, labels={"tier": "gpu"}).changed is False
    text = host.text(KUBELET_CONFIG) or ""
    host.put(KUBELET_CONFIG, text.replace("cgroupDriver: cgroupfs", "cgroupDriver: systemd"))
    assert passed(host, labels={"tier": "gpu"}).state == "converged"
    assert systemd_of_runc(host) is True


def test_a_worker_of_ours_says_it_right_behind_the_join(older: Cluster) -> None:
    assert "the kubelet of this node takes its cgroups from cgroupfs" in message(passed(KubeHost(older)))


def test_a_containerd_that_tells_the_kubelet_its_driver_is_configured(older: Cluster) -> None:
    host = KubeHost(older, containerd="2.1.9")
    assert passed(host).state == "converged"
    assert systemd_of_runc(host) is True
    second_pass_is_quiet(UNIT, host, host.settings())


@pytest.mark.parametrize(
    ("config", "takes"),
    [
        ("cgroupDriver: cgroupfs\n", True),
        ("apiVersion: kubelet.config.k8s.io/v1beta1\ncgroupDriver: 'cgroupfs'\nkind: KubeletConfiguration\n", True),
        ("cgroupDriver: systemd\n", False),
        ("# cgroupDriver: cgroupfs\n", False),
        ("", False),
    ],
)
def test_what_a_kubelets_configuration_says(config: str, takes: bool) -> None:
    assert takes_cgroupfs(config) is takes
