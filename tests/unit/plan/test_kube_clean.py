# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handing a machine back: what is taken back, what is in the way, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotReady, Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import Unknown
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.holds import Hold
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_clean import (
    DRAIN,
    RESET,
    Leaving,
    plan,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_kept import UNCORDON
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Joined, Membership, Node
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service

PIN, OTHER = "0" * 64, "f" * 64
CONF = "/etc/kubernetes/kubelet.conf"
RUNNING = Service("loaded", "active", "enabled")
JOINED = Joined("https://10.77.0.1:6443", (PIN,), "ca", "/var/lib/kubelet/pki/kubelet-client-current.pem", "gpu-01", 2)
NODE = Node("gpu-01", ready=True)
RECORD = Membership("https://k8s.example.com:443", PIN, "gpu-01")
EMPTIED = NODE._replace(unschedulable=True)
NOW = Leaving(JOINED, RECORD, RUNNING, "gpu-01", (CONF,), node=NODE, pods=("default/db",))
DRAINED = NOW._replace(node=EMPTIED, pods=())
APPLIED = Past(applied={"k8s-join": {}})
JOINING = Past(owed=frozenset(("clean join",)))
RESETS = "kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock --skip-phases=remove-etcd-member"
DISABLES = "systemctl disable --no-reload kubelet.service"
FORGETS = "remove /var/lib/bcd-hostconfig/k8s-join.json"
DRAINS = (
    "env HOME=/proc/none KUBECONFIG= KUBERC=off kubectl --kubeconfig /etc/kubernetes/kubelet.conf "
    "--request-timeout=30s drain gpu-01 --ignore-daemonsets --delete-emptydir-data --force "
    "--pod-selector=!pod-template-generation --timeout=300s"
)


def planned(now: Leaving, past: Past = Past()) -> tuple[Plan, bool]:  # noqa: B008 - a value
    todo = Todo()
    follows = plan(todo, now, past)
    return todo.plan(), follows


def lines(now: Leaving, past: Past = Past()) -> list[str]:  # noqa: B008 - a value
    return [" ".join(step.argv) or f"{step.kind} {step.path}" for step in planned(now, past)[0].steps]


def refusal(now: Leaving) -> str:
    with pytest.raises(Refused) as fault:
        planned(now)
    return fault.value.message


def test_a_join_of_ours_is_emptied_reset_and_not_started_at_boot_any_more() -> None:
    found, follows = planned(NOW)
    assert lines(NOW) == [DRAINS, RESETS, DISABLES, FORGETS]
    drain, reset, _disable, _forget = found.steps
    assert drain.ok == (0, 1)
    assert (drain.tries, drain.barrier, drain.owes, drain.disruption) == (DRAIN, True, (UNCORDON,), "service")
    assert (reset.owes, reset.barrier, reset.disruption) == ((RESET, "clean join"), True, "service")
    assert set(reset.pays) == {RESET, UNCORDON, "clean join"}
    assert [step.lane for step in found.steps] == ["pods", "", "", ""]
    assert follows


def test_it_says_what_stays() -> None:
    for notes in (planned(NOW)[0].notes, planned(Leaving(name="gpu-01"), APPLIED)[0].notes):
        assert "kubectl delete node gpu-01" in notes[0]
        assert "/etc/cni/net.d" in notes[1]


def test_a_machine_of_which_nothing_is_ours_is_left_alone() -> None:
    assert planned(Leaving(name="gpu-01")) == (Plan(), True)
    found, follows = planned(NOW._replace(record=None))
    assert (found.steps, follows) == ((), True)
    assert "was not joined by us, so it is not reset" in found.notes[0]


def test_a_join_that_no_record_names_yet_is_ours_all_the_same() -> None:
    ours = JOINING._replace(applied={"k8s-join": {"caCertSha256": f"sha256:{PIN}".upper().replace("SHA", "sha")}})
    assert lines(NOW._replace(record=None), ours) == [DRAINS, RESETS, DISABLES]


def test_a_membership_of_a_cluster_that_was_not_asked_for_is_not_ours() -> None:
    for applied in ({"k8s-join": {"apiServer": "https://10.0.0.9", "caCertSha256": OTHER}}, {}):
        with pytest.raises(Refused, match="not ours to take back"):
            planned(NOW._replace(record=None), JOINING._replace(applied=applied))


# -- a reset that did not end, or was made by hand


def test_a_reset_that_was_killed_is_made_again() -> None:
    half = Leaving(None, RECORD, Service("loaded", "inactive", "enabled"), "gpu-01")
    assert lines(half, Past(owed=frozenset((RESET,)))) == [RESETS, DISABLES, FORGETS]
    assert lines(half._replace(files=("/etc/kubernetes/pki/ca.crt",))) == [RESETS, DISABLES, FORGETS]


@pytest.mark.parametrize(
    ("kubelet", "steps"),
    [
        (Service("loaded", "inactive", "enabled"), [DISABLES]),
        (Service("loaded", "activating", "disabled"), ["systemctl stop kubelet.service"]),
        (Service("loaded", "active", "enabled"), [DISABLES, "systemctl stop kubelet.service"]),
        (Service("loaded", "inactive", "disabled"), []),
        (Service(), []),
    ],
)
def test_a_machine_that_was_reset_by_hand_is_not_reset_again(kubelet: Service, steps: list[str]) -> None:
    now = Leaving(None, RECORD, kubelet, "gpu-01")
    assert lines(now) == [*steps, FORGETS]
    assert planned(now)[1]


def test_a_join_that_came_to_nothing_is_undone_without_a_reset() -> None:
    left = ("/etc/kubernetes/bootstrap-kubelet.conf", "/var/lib/kubelet/config.yaml")
    now = Leaving(None, None, Service("loaded", "activating", "enabled"), "gpu-01", left)
    assert lines(now, JOINING) == [
        DISABLES,
        "systemctl stop kubelet.service",
        f"rm -f -- {' '.join(left)} /var/lib/bcd-hostconfig/k8s-join.yaml",
    ]
    found, follows = planned(now._replace(is_joining=True), JOINING)
    assert (found.steps, found.pending[0].reason, follows) == ((), "NotReady", False)


def test_a_kubelet_that_never_joined_anything_does_not_start_at_boot_any_more() -> None:
    idle = Leaving(None, None, Service("loaded", "activating", "enabled"), "gpu-01")
    assert lines(idle, APPLIED) == [DISABLES, "systemctl stop kubelet.service"]
    assert lines(idle) == []  # the unit was never here
    assert lines(idle._replace(kubelet=RUNNING), APPLIED) == []  # somebody's, without a cluster of kubeadm's


# -- what is in the way


def test_a_control_plane_is_never_reset() -> None:
    assert "/etc/kubernetes/manifests/kube-apiserver.yaml is there" in refusal(NOW._replace(is_control_plane=True))


def test_a_membership_of_another_cluster_is_not_ours_to_take_back() -> None:
    said = refusal(NOW._replace(joined=JOINED._replace(pins=(OTHER,))))
    assert f"sha256:{OTHER}" in said
    assert f"sha256:{PIN}" in said


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({"holds": (Hold("alloc_1", ("GPU-1",)),)}, "the allocation alloc_1 has GPU-1"),
        ({"users": "ml/train-0 has GPU-1"}, "ml/train-0 has GPU-1"),
        ({"holds": tuple(Hold(f"a{at}", ("G",)) for at in range(5))}, "a2 has G and 2 more: "),
    ],
)
def test_devices_that_are_held_keep_the_machine_in_its_cluster(fields: dict[str, Any], who: str) -> None:
    found, follows = planned(NOW._replace(**fields))
    assert (found.steps, follows) == ((), False)
    assert found.pending[0].reason == "Busy"
    assert who in found.pending[0].message


def test_nothing_is_asked_of_devices_once_the_membership_is_gone() -> None:
    left = Leaving(None, RECORD, Service("loaded", "inactive", "disabled"), holds=(Hold("alloc_1", ("GPU-1",)),))
    assert planned(left) == (planned(left)[0], True)
    assert planned(left)[0].pending == ()


def test_mounts_that_hold_data_are_refused_once_the_pods_are_gone() -> None:
    mounted = ("/var/lib/kubelet/pods/1/volumes/nfs (nfs4)",)
    found, follows = planned(NOW._replace(mounts=mounted))
    assert [step.kind for step in found.steps] == ["run", "later"]
    assert found.steps[1].action == "kubeadm reset: known after the pods of the node gpu-01 are evicted"
    assert not follows
    assert "volumes/nfs (nfs4) is still mounted" in refusal(DRAINED._replace(mounts=mounted))
    assert "b (ext4) are still mounted" in refusal(DRAINED._replace(mounts=("a (nfs)", "b (ext4)")))


def test_a_machine_without_kubeadm_is_not_reset() -> None:
    found, follows = planned(DRAINED._replace(has_kubeadm=False))
    assert (found.steps[0].kind, len(found.steps), follows) == ("fail", 1, False)
    assert "kubeadm is not installed" in found.steps[0].text


# -- pods


def test_pods_are_evicted_as_long_as_there_are_some_or_more_may_come() -> None:
    assert lines(DRAINED) == [RESETS, DISABLES, FORGETS]
    assert lines(DRAINED._replace(pods=("default/db",)))[0] == DRAINS
    assert planned(DRAINED._replace(pods=("default/db",)))[0].steps[0].owes == ()  # an admin cordoned it
    assert lines(NOW._replace(pods=()))[0] == DRAINS


def test_pods_that_cannot_be_evicted_are_told_and_keep_nothing() -> None:
    past = Past(vain=frozenset((DRAIN,)), tried={DRAIN: "Cannot evict pod: disruption budget"})
    found, follows = planned(NOW, past)
    assert lines(NOW, past) == [RESETS, DISABLES, FORGETS]
    reset = "take this machine out of its cluster https://k8s.example.com:443 (kubeadm reset)"
    assert found.steps[0].action == (
        f"{reset}, though default/db could not be evicted: Cannot evict pod: disruption budget"
    )
    assert follows
    # kubectl's own end, once the pods are gone: it may not look at them any more
    assert planned(DRAINED, past)[0].steps[0].action == reset


def test_a_node_that_cannot_be_cordoned_is_told_and_keeps_nothing() -> None:
    past = Past(vain=frozenset((DRAIN,)), tried={DRAIN: "kubectl: no such program"})
    found, _follows = planned(NOW._replace(pods=()), past)
    assert found.steps[0].action.endswith(", though it could not be cordoned: kubectl: no such program")


def test_an_api_server_that_is_away_keeps_nothing() -> None:
    away: Any = Unknown(NotReady("it is away"))
    found, follows = planned(NOW._replace(node=away, pods=()))
    assert lines(NOW._replace(node=away, pods=())) == [RESETS, DISABLES, FORGETS]
    assert found.steps[0].action.endswith(", though its pods could not be evicted: it is away")
    assert follows
    assert lines(NOW._replace(node=None, pods=())) == [RESETS, DISABLES, FORGETS]  # an admin has deleted it


def test_pods_that_are_not_known_are_evicted_all_the_same_and_the_reset_says_so() -> None:
    away: Any = Unknown(NotReady("it is away"))
    unseen = NOW._replace(node=EMPTIED, pods=away)
    assert lines(unseen) == [DRAINS, RESETS, DISABLES, FORGETS]
    tried = Past(vain=frozenset((DRAIN,)), tried={DRAIN: ""})
    assert lines(unseen, tried) == [RESETS, DISABLES, FORGETS]
    assert planned(unseen, tried)[0].steps[0].action.endswith(", though its pods are not known: it is away")


def test_the_kubelet_is_not_stopped_twice() -> None:
    """kubeadm reset stops it, and check mode knows."""
    (reset,) = (step for step in planned(DRAINED)[0].steps if step.argv[:1] == ("kubeadm",))
    assert ("fails", "systemctl is-active kubelet.service", "inactive\n") in [tuple(one) for one in reset.effects]
