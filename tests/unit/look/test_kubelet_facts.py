# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a kubelet: before a join, of a member, and as far as an account without root sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kubelet_facts import kubelet
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import KUBELET_CONF, KUBELET_CONFIG
from tests.cluster.control_plane import Cluster
from tests.unit.fake_host import FakeHost
from tests.unit.kube_host import KubeHost

CLIENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
YEAR_2028 = 1830297600
NOTHING = dict.fromkeys(("server", "node", "ca_pins", "certificate_expires"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as started:
        yield started


def worker(cluster: Cluster, **more: Any) -> KubeHost:
    host = KubeHost(cluster, **more)
    host.programs["kubelet"] = lambda _host, _argv: Answer(0, "Kubernetes v1.31.14\n")
    return host


def member(cluster: Cluster) -> KubeHost:
    cluster.nodes.clear()
    host = worker(cluster)
    said = host.join_by_hand()
    assert said.rc == 0, said.err
    host.links.pop(CLIENT, None)
    host.put(CLIENT, cluster.issue("gpu-01", YEAR_2028))
    return host


def test_a_host_without_kubernetes_has_nothing_and_is_asked_nothing(cluster: Cluster) -> None:
    host = FakeHost()
    assert kubelet(host) == ({}, ())
    assert host.asked == []
    bare = KubeHost(cluster, installed=False)
    assert kubelet(bare) == ({}, ())


def test_packages_without_a_join(cluster: Cluster) -> None:
    facts = {"installed": True, "version": "1.31.14", "active": False, "enabled": False, "joined": False}
    assert kubelet(worker(cluster)) == ({**facts, **NOTHING, "swap_allowed": None}, ())


def test_a_member(cluster: Cluster) -> None:
    host = member(cluster)
    facts, unread = kubelet(host)
    (entry,) = yaml.safe_load(host.text(KUBELET_CONF) or "")["clusters"]
    assert unread == ()
    assert {key: facts[key] for key in NOTHING} == {
        "server": entry["cluster"]["server"],
        "node": "gpu-01",
        "ca_pins": [cluster.pin],
        "certificate_expires": "2028-01-01T00:00:00Z",
    }
    assert (facts["joined"], facts["active"], facts["swap_allowed"]) == (True, True, False)


def test_a_cluster_whose_kubelets_run_beside_swap(cluster: Cluster) -> None:
    host = member(cluster)
    host.put(
        KUBELET_CONFIG, "apiVersion: kubelet.config.k8s.io/v1beta1\nfailSwapOn: false\nkind: KubeletConfiguration\n"
    )
    assert kubelet(host)[0]["swap_allowed"] is True


def test_what_an_account_without_root_cannot_read_is_null_and_named(cluster: Cluster) -> None:
    host = member(cluster)
    host.unreadable |= {KUBELET_CONF, KUBELET_CONFIG}
    facts, unread = kubelet(host)
    assert (facts["installed"], facts["joined"], facts["version"], facts["active"]) == (True, True, "1.31.14", True)
    assert {key: facts[key] for key in (*NOTHING, "swap_allowed")} == {**NOTHING, "swap_allowed": None}
    assert list(unread) == [
        f"kubelet.server: cannot read {KUBELET_CONF}: Permission denied",
        f"kubelet.swap_allowed: cannot read {KUBELET_CONFIG}: Permission denied",
    ]


def test_a_kubelet_conf_that_is_none_costs_its_own_facts_alone(cluster: Cluster) -> None:
    host = member(cluster)
    host.put(KUBELET_CONF, "not a kubeconfig\n")
    facts, unread = kubelet(host)
    assert (facts["joined"], facts["server"], facts["active"]) == (True, None, True)
    assert [line.partition(":")[0] for line in unread] == ["kubelet.server"]


def test_a_member_without_a_certificate_says_when_it_ends_to_nobody(cluster: Cluster) -> None:
    host = member(cluster)
    del host.files[CLIENT]
    facts, _unread = kubelet(host)
    assert (facts["node"], facts["certificate_expires"], facts["ca_pins"]) == (None, None, [cluster.pin])
