# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole unit over one machine: it joins, is kept, and is handed back, and others' machines are left running."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given, Secret
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import KUBELET_CONF
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.control_plane import Cluster
from tests.unit import promises
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.kube_host import KubeHost
from tests.unit.member_host import member

RECORDS = "/var/lib/bcd-hostconfig/"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as served:
        yield served


def worker(cluster: Cluster) -> KubeHost:
    """A machine with swap that the unit has joined and settled, and a pod on it."""
    with cluster.lock:
        cluster.nodes.clear()
        cluster.pods.clear()
    host = KubeHost(cluster)
    host.swap_on()
    given = Given({"join-token": Secret(cluster.token())})
    outcome = promises.go(UNIT, host, host.settings(labels={"pool": "a"}), given=given)
    assert outcome.state == "converged", outcome
    cluster.pod("db", "gpu-01")
    host.calls.clear()
    return host


def shown(host: FakeHost) -> tuple[object, ...]:
    """What the machine shows, without root's records."""
    assert isinstance(host, KubeHost)
    files = {path: file.text for path, file in host.files.items() if not path.startswith((RECORDS, "/proc/sys/kernel"))}
    return files, host.kubelet, host.worker.is_enabled()


def test_it_is_kept_and_handed_back_as_check_mode_tells(cluster: Cluster) -> None:
    kept = promises.second_pass_is_quiet(UNIT, (host := worker(cluster)), host.settings(labels={"pool": "a"}))
    assert (kept.state, kept.conditions) == ("converged", ())
    outcome = promises.check_is_truthful(UNIT, lambda: worker(cluster), None)
    assert outcome.state == "converged"
    assert "kubectl delete node gpu-01" in " ".join(outcome.notes)


@pytest.mark.exhaustive
def test_a_hand_back_that_dies_anywhere_is_ended_by_the_next_pass(cluster: Cluster) -> None:
    assert promises.a_kill_loses_nothing(UNIT, lambda: worker(cluster), None, shown) > 10
    host = worker(cluster)
    promises.go(UNIT, host, None)
    assert "/swap.img" in (host.text("/proc/swaps") or "")
    assert promises.second_pass_is_quiet(UNIT, host, None).changed is False
    # and it may come back, once an admin has done what was told
    given = Given({"join-token": Secret(cluster.token())})
    cluster.delete_node("gpu-01")
    assert promises.go(UNIT, host, host.settings(), given=given).state == "converged"
    assert "gpu-01" in cluster.nodes


@pytest.mark.parametrize("gone", [(), (KUBELET_CONF,), (KUBELET_CONF, "/var/lib/kubelet/config.yaml")])
def test_a_reset_that_lost_power_is_no_hindrance_when_the_unit_is_wanted_again(
    cluster: Cluster, gone: tuple[str, ...]
) -> None:
    host = worker(cluster)
    real = host.programs["kubeadm"]

    def dies(here: FakeHost, argv: tuple[str, ...]) -> Answer:
        if "reset" not in argv:
            return real(here, argv)
        host.stop_kubelet()
        for path in gone:
            host.worker.remove(path)
        raise Killed("kubeadm reset")

    host.programs["kubeadm"] = dies
    with pytest.raises(Killed):
        promises.go(UNIT, host, None)
    host.programs["kubeadm"] = real
    if gone:
        cluster.delete_node("gpu-01")
    settings = host.settings(labels={"pool": "a"})
    given = Given({"join-token": Secret(cluster.token())})
    assert promises.go(UNIT, host, settings, given=given).state == "converged"
    assert (host.kubelet, cluster.labels("gpu-01")) == ("active", {"pool": "a"})
    assert "unschedulable" not in cluster.nodes["gpu-01"]["spec"]
    promises.second_pass_is_quiet(UNIT, host, settings)


def test_a_member_that_others_joined_keeps_what_its_kubelet_stands_on(cluster: Cluster) -> None:
    host = member(cluster, ours=False)
    host.swap_on()
    host.stop_kubelet()
    assert promises.go(UNIT, host, host.settings()).state == "converged"
    before = shown(host)
    outcome = promises.go(UNIT, host, None)
    assert outcome.state == "converged"
    assert "was not joined by us, so it is not reset" in outcome.notes[0]
    assert shown(host) == before
    assert host.kubelet == "active"
    assert host.programs["kubeadm"](host, ("kubeadm", "reset", "--force", "--skip-phases=remove-etcd-member")).rc == 0
    assert promises.go(UNIT, host, None).state == "converged"
    assert "/swap.img" in (host.text("/proc/swaps") or "")
