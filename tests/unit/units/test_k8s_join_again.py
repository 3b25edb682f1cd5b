# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k8s-join: by what a quiet turn of a member is known again in a cluster that lives, and what is a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import KUBELET_CONF, RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.control_plane import Cluster
from tests.unit.kube_host import KubeHost
from tests.unit.kube_passes import NODE, passed
from tests.unit.promises import go
from tests.unit.quiet_turn import Asked, asked_in, differing

SETTINGS: dict[str, Any] = {"labels": {"tier": "gpu"}, "taints": ["nvidia.com/gpu=present:NoSchedule"]}
DAY = 86_400
DPKG = "/var/lib/dpkg/status"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.token()
        yield made


def member(cluster: Cluster) -> KubeHost:
    """A machine that we joined, with its swap off."""
    host = KubeHost(cluster)
    host.swap_on()
    host.put(DPKG, "Package: kubelet\n")
    assert passed(host, **SETTINGS).state == "converged"
    return host


def asked_by(host: KubeHost) -> Asked:
    """What a quiet turn asks."""

    def turn(watched: Watched) -> None:
        assert go(UNIT, watched, host.settings(**SETTINGS)).steps == ()  # type: ignore[arg-type]

    return asked_in(host, turn)


def test_a_cluster_that_lives_and_a_clock_that_runs_are_no_difference(cluster: Cluster) -> None:
    host = member(cluster)
    asked = asked_by(host)
    with cluster.lock:
        node = cluster.nodes[NODE]
        node["metadata"]["resourceVersion"] = "987654"
        node["metadata"]["labels"]["nvidia.com/gfd.timestamp"] = "1764000000"
        node["metadata"].setdefault("annotations", {})["cni"] = "10.0.0.0/24"
        node["spec"].setdefault("taints", []).append({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"})
        for condition in node["status"]["conditions"]:
            condition["lastHeartbeatTime"] = "2026-11-30T00:05:00Z"
        node["status"]["images"] = [{"names": ["registry/image"], "sizeBytes": 1}]
    host.unix += DAY
    host.put("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 7 kB\n")
    assert differing(host, asked) == []
    assert asked_by(host) == asked


def test_only_systemd_is_asked_again_by_a_program(cluster: Cluster) -> None:
    host = member(cluster)
    asked = asked_by(host)
    assert [question for question in asked if question[0] == "ask"] == []
    host.asked.clear()
    assert differing(host, asked) == []
    assert sorted({line[0] for line in host.asked}) == ["GET", "systemctl"]


# -- what is a difference


def of_node(change: Callable[[Any], Any]) -> Callable[[KubeHost, Cluster], None]:
    """A change of the Node."""

    def made(_host: KubeHost, cluster: Cluster) -> None:
        with cluster.lock:
            change(cluster.nodes[NODE])

    return made


def of_file(path: str, before: str, after: str) -> Callable[[KubeHost, Cluster], None]:
    """A change of a text."""

    def made(host: KubeHost, _cluster: Cluster) -> None:
        text = host.text(path) or ""
        assert before in text
        host.put(path, text.replace(before, after, 1))

    return made


def deleted(_host: KubeHost, cluster: Cluster) -> None:
    cluster.delete_node(NODE)


def not_ready(_host: KubeHost, cluster: Cluster) -> None:
    cluster.faults.not_ready = True  # at the kubelet's next word


def swap_came_back(host: KubeHost, _cluster: Cluster) -> None:
    host.put("/proc/swaps", (host.text("/proc/swaps") or "") + "/swap.img file 1024 0 -2\n")


def certificate_ends(host: KubeHost, _cluster: Cluster) -> None:
    host.unix += 10_000 * DAY


CHANGES: dict[str, Callable[[KubeHost, Cluster], None]] = {
    "a label of ours": of_node(lambda node: node["metadata"]["labels"].update(tier="cpu")),
    "a label below our domain": of_node(lambda node: node["metadata"]["labels"].update({"bcd.dev/old": "x"})),
    "a taint of ours": of_node(lambda node: node["spec"].update(taints=[])),
    "a cordon": of_node(lambda node: node["spec"].update(unschedulable=True)),
    "a Node that was made anew": of_node(lambda node: node["metadata"].update(uid="another")),
    "a Node that is not ready": not_ready,
    "a Node that is gone": deleted,
    "another cluster": of_file(KUBELET_CONF, "server: https://", "server: https://other."),
    "another record": of_file(RECORD, "tier", "tyre"),
    "forwarding that was turned off": of_file("/proc/sys/net/ipv4/ip_forward", "1", "0"),
    "a file of ours": of_file("/etc/sysctl.d/90-bcd-k8s.conf", "1", "0"),
    "a line of fstab": of_file("/etc/fstab", "# off while", "#"),
    "swap that is on again": swap_came_back,
    "packages that changed": of_file(DPKG, "kubelet", "kubeadm"),
    "another host name": of_file("/proc/sys/kernel/hostname", "gpu", "cpu"),
    "a certificate that is over": certificate_ends,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_plan_is_about_is_one(cluster: Cluster, change: Callable[[KubeHost, Cluster], None]) -> None:
    host = member(cluster)
    asked = asked_by(host)
    change(host, cluster)
    assert differing(host, asked)
