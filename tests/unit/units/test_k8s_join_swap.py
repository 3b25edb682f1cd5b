# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k8s-join and swap, over the whole unit: off for kubelets that refuse to run beside it, and left to those that do."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import KUBELET_CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.swap_record import RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.control_plane import Cluster
from tests.unit.fake_host import Killed
from tests.unit.kube_host import KubeHost
from tests.unit.kube_passes import actions, joins, passed
from tests.unit.promises import go, second_pass_is_quiet

SWAP = "/swap.img"


@pytest.fixture
def lenient(cluster: Cluster) -> Cluster:
    """A cluster whose kubelets run beside swap."""
    cluster.kubelet_config["failSwapOn"] = False
    return cluster


def swapping(cluster: Cluster) -> KubeHost:
    host = KubeHost(cluster)
    host.swap_on()
    return host


def state(host: KubeHost) -> tuple[bool, bool, bool]:
    """Whether swap is on, a boot turns it on, and something is recorded."""
    fstab = (host.text("/etc/fstab") or "").splitlines()
    return SWAP in (host.text("/proc/swaps") or ""), f"{SWAP} none swap sw 0 0" in fstab, host.text(RECORD) is not None


def test_it_is_off_for_a_strict_cluster_and_comes_back_with_the_removal(cluster: Cluster) -> None:
    host = swapping(cluster)
    done = passed(host)
    assert (done.failure, done.state, joins(host), state(host)) == (None, "converged", 1, (False, False, True))
    assert go(UNIT, host, None).failure is None
    assert state(host) == (True, True, False)


def test_a_cluster_that_allows_it_gives_it_back_in_the_pass_that_joins(lenient: Cluster) -> None:
    host = swapping(lenient)
    done = passed(host)
    assert (done.failure, done.state, joins(host), state(host)) == (None, "converged", 1, (True, True, False))
    assert host.kubelet == "active"
    second_pass_is_quiet(UNIT, host, host.settings())
    assert go(UNIT, host, None).failure is None
    assert state(host) == (True, True, False)


def test_a_member_of_a_cluster_that_allows_it_is_left_alone(lenient: Cluster) -> None:
    host = swapping(lenient)
    host.join_by_hand()
    done = passed(host)
    assert (done.failure, state(host)) == (None, (True, True, False))
    assert [line for line in actions(done) if "swap" in line] == []


def test_what_is_left_of_a_join_says_nothing_of_the_next(lenient: Cluster) -> None:
    """A kubelet's configuration of a join that lost power goes with it, and swap stays off until there is a member."""
    host = swapping(lenient)
    host.dies_at = "kubelet-wait-bootstrap"
    lenient.faults.no_approval = True
    with pytest.raises(Killed):
        passed(host)
    assert "failSwapOn: false" in (host.text(KUBELET_CONFIG) or "")
    lenient.faults.no_approval = False
    lenient.kubelet_config["failSwapOn"] = True
    host.typed.clear()
    done = passed(host)
    assert (done.failure, done.state, joins(host), state(host)) == (None, "converged", 1, (False, False, True))
    assert [line for line in actions(done) if "swap" in line] == []
