# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member stays one: what is planned for its kubelet and its Node, as they are found."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotReady
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import Unknown
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_membership
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_kept import (
    LABELS,
    REGISTER,
    START,
    UNCORDON,
    Kept,
    plan,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_labels import Gpus
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    Joined,
    Membership,
    Node,
    Settings,
    Taint,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service

PIN = "0" * 64
SERVER = "https://10.77.0.1:6443"  # as kubelet.conf has it; the settings name another
WANT = Settings("https://k8s.example.com:443", "k8s.example.com:443", PIN, labels={"pool": "a"})
JOINED = Joined(SERVER, (PIN,), "ca", "/var/lib/kubelet/pki/kubelet-client-current.pem", "gpu-01", 1_800_000_000)
NODE = Node("gpu-01", {"kubernetes.io/os": "linux", "pool": "a"}, ready=True)
RECORD = Membership(WANT.api_server, PIN, "gpu-01", {"pool": "a"})
RUNNING = Service("loaded", "active", "enabled")
KEPT = Kept(JOINED, NODE, RECORD, RUNNING)
KUBECTL = "env HOME=/proc/none KUBECONFIG= KUBERC=off kubectl --kubeconfig /etc/kubernetes/kubelet.conf"
LABEL = f"{KUBECTL} --request-timeout=30s label node gpu-01"


def planned(now: Kept = KEPT, want: Settings = WANT, past: Past = Past()) -> Plan:  # noqa: B008 - a value
    todo = Todo()
    plan(todo, want, now, past)
    return todo.plan()


def lines(found: Plan) -> list[str]:
    """The command lines, and what is written, in order."""
    return [" ".join(step.argv) or f"{step.kind} {step.path}" for step in found.steps]


def shows(**fields: Any) -> Kept:
    return KEPT._replace(node=NODE._replace(**fields))


def test_a_member_that_is_as_it_should_be_needs_nothing() -> None:
    assert planned() == Plan()


# -- labels


def test_a_label_that_is_missing_is_recorded_before_the_node_has_it() -> None:
    found = planned(want=WANT._replace(labels={"pool": "b", "rack": "7"}))
    assert lines(found) == ["write /var/lib/bcd-hostconfig/k8s-join.json", f"{LABEL} pool=b rack=7 --overwrite"]
    assert kube_membership.parse(found.steps[0].text).labels == {"pool": "b", "rack": "7"}
    assert {step.lane for step in found.steps} == {LABELS}
    assert {step.disruption for step in found.steps} == {"none"}


def test_a_label_of_another_value_is_set_again_and_the_record_needs_nothing() -> None:
    assert lines(planned(shows(labels={"pool": "else"}))) == [f"{LABEL} pool=a --overwrite"]


def test_a_label_that_leaves_is_recorded_until_the_node_has_it_no_more() -> None:
    found = planned(want=WANT._replace(labels={"rack": "7"}))
    assert lines(found) == [
        "write /var/lib/bcd-hostconfig/k8s-join.json",
        f"{LABEL} rack=7 pool- --overwrite",
        "write /var/lib/bcd-hostconfig/k8s-join.json",
    ]
    first, _label, last = found.steps
    assert kube_membership.parse(first.text).labels == {"rack": "7", "pool": "a"}
    assert kube_membership.parse(last.text).labels == {"rack": "7"}


def test_only_our_labels_go_and_those_of_our_domain() -> None:
    labels = {"pool": "a", "admins": "x", "bcd.dev/old": "y", "nvidia.com/gpu.count": "8", "bcd.device/x": "z"}
    assert lines(planned(shows(labels=labels))) == [f"{LABEL} bcd.dev/old- --overwrite"]


def test_labels_of_a_machine_that_others_joined_are_kept_without_a_record() -> None:
    found = planned(KEPT._replace(record=None), WANT._replace(labels={"rack": "7"}))
    assert lines(found) == [f"{LABEL} rack=7 --overwrite"]
    assert "was not joined by us" in found.notes[0]
    assert planned(KEPT._replace(record=None)) == Plan()


def test_a_record_of_another_cluster_says_nothing_of_this_membership_and_stays() -> None:
    old = RECORD._replace(pin="f" * 64, labels={"rack": "7"}, taints=(Taint("old", "", "NoExecute"),))
    found = planned(KEPT._replace(record=old, node=NODE._replace(labels={"pool": "a", "rack": "7"})))
    assert (found.steps, found.conditions) == ((), ())


def test_another_pin_of_the_same_ca_bundle_is_recorded() -> None:
    both = JOINED._replace(pins=("f" * 64, PIN))
    found = planned(KEPT._replace(joined=both, record=RECORD._replace(pin="f" * 64)))
    assert kube_membership.parse(found.steps[0].text) == RECORD


def test_what_this_machine_is_becomes_labels() -> None:
    now = KEPT._replace(gpus=Gpus(2, ("NVIDIA L4", "NVIDIA L4"), "570.124.06"))
    found = planned(now, past=Past(given=Given(node_id="n1", site="fra")))
    assert lines(found)[1] == (
        f"{LABEL} bcd.dev/gpu.count=2 bcd.dev/gpu.driver=570.124.06 bcd.dev/gpu.product=NVIDIA-L4 bcd.dev/node-id=n1 "
        "bcd.dev/site=fra --overwrite"
    )


def test_gpus_that_do_not_answer_keep_their_labels() -> None:
    ours = {"bcd.dev/gpu.count": "2", "bcd.dev/node-id": "n1"}
    now = KEPT._replace(gpus=None, node=NODE._replace(labels={"pool": "a", **ours}))
    now = now._replace(record=RECORD._replace(labels={"pool": "a", **ours}))
    assert planned(now) == Plan()
    gone = planned(now._replace(gpus=Gpus()))
    assert lines(gone)[0] == f"{LABEL} bcd.dev/gpu.count- --overwrite"  # what was not said stays


def test_another_address_of_the_same_cluster_is_recorded() -> None:
    found = planned(KEPT._replace(record=RECORD._replace(api_server="https://10.0.0.9:6443")))
    assert kube_membership.parse(found.steps[0].text) == RECORD


# -- taints


GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")
OLD = Taint("old", "", "NoExecute")


def test_taints_that_differ_are_a_condition_with_the_admins_command_and_the_unit_is_converged() -> None:
    found = planned(
        KEPT._replace(record=RECORD._replace(taints=(OLD,)), node=NODE._replace(taints=(OLD,))),
        WANT._replace(taints=(GPU,)),
    )
    (condition,) = found.conditions
    assert (condition.type, condition.status, condition.reason) == ("KubernetesTaintsDrift", "true", "NodeRestriction")
    assert condition.message.endswith(
        "kubectl taint node gpu-01 nvidia.com/gpu=present:NoSchedule old:NoExecute- --overwrite"
    )
    assert (found.steps, found.pending) == ((), ())


def test_the_record_follows_taints_that_an_admin_has_changed() -> None:
    now = KEPT._replace(record=RECORD._replace(taints=(OLD,)), node=NODE._replace(taints=(GPU,)))
    found = planned(now, WANT._replace(taints=(GPU,)))
    assert found.conditions == ()
    assert kube_membership.parse(found.steps[0].text).taints == (GPU,)


def test_taints_of_controllers_are_not_ours() -> None:
    assert planned(shows(taints=(Taint("node.kubernetes.io/not-ready", "", "NoExecute"),))) == Plan()


# -- the Node


def test_a_node_that_is_not_ready_is_a_note() -> None:
    found = planned(shows(ready=False))
    assert (found.steps, found.pending) == ((), ())
    assert "the node gpu-01 is not Ready yet" in found.notes[0]


def test_a_node_that_is_not_there_is_registered_again_by_a_restart_once() -> None:
    gone = KEPT._replace(node=None)
    (step,) = planned(gone).steps
    assert (step.argv, step.tries, step.barrier) == (("systemctl", "restart", "kubelet.service"), REGISTER, True)
    assert step.disruption == "service"
    found = planned(gone, past=Past(tried={REGISTER: ""}))
    assert (found.steps, found.pending[0].reason, found.pending[0].lane) == ((), "NotReady", LABELS)
    assert "has no node gpu-01" in found.pending[0].message


def test_an_api_server_that_does_not_answer_stops_nothing_but_the_labels() -> None:
    away: Any = Unknown(NotReady("it is away"))
    found = planned(KEPT._replace(node=away, kubelet=RUNNING._replace(active="inactive", enabled="disabled")))
    assert lines(found) == [
        "systemctl enable --no-reload kubelet.service",
        "systemctl start kubelet.service",
    ]
    assert [(wait.reason, wait.message, wait.lane) for wait in found.pending] == [("NotReady", "it is away", LABELS)]


def test_a_removal_that_did_not_end_is_taken_back() -> None:
    found = planned(shows(unschedulable=True), past=Past(owed=frozenset((UNCORDON,))))
    assert lines(found) == [f"{KUBECTL} --request-timeout=30s uncordon gpu-01"]
    assert found.steps[0].pays == (UNCORDON,)
    admins = planned(shows(unschedulable=True))
    assert (admins.steps, admins.pending) == ((), ())
    assert "takes no new pods" in admins.notes[0]


# -- the kubelet


@pytest.mark.parametrize("active", ["inactive", "failed"])
def test_a_kubelet_that_does_not_run_is_started(active: str) -> None:
    (step,) = planned(KEPT._replace(kubelet=RUNNING._replace(active=active))).steps
    assert (step.argv, step.disruption, step.lane) == (("systemctl", "start", "kubelet.service"), "none", "kubelet")
    again = planned(KEPT._replace(kubelet=RUNNING._replace(active=active)), past=Past(tried={START: ""}))
    assert again.steps[0].retry


@pytest.mark.parametrize(("active", "vain"), [("activating", ()), ("failed", (START,))])
def test_a_kubelet_that_does_not_stay_up_is_told_with_its_last_words(active: str, vain: tuple[str, ...]) -> None:
    now = KEPT._replace(kubelet=RUNNING._replace(active=active), said='E1130 "failed to run Kubelet"')
    found = planned(now, past=Past(vain=frozenset(vain)))
    assert found.steps == ()
    assert found.pending[0].reason == "NotReady"
    assert 'its last words are: E1130 "failed to run Kubelet"' in found.pending[0].message


def test_a_kubelet_that_cannot_be_started() -> None:
    (step,) = planned(KEPT._replace(kubelet=RUNNING._replace(active="inactive", enabled="masked"))).steps
    assert step.kind == "fail"
    assert "systemctl unmask kubelet.service" in step.text
    assert "install kubelet" in planned(KEPT._replace(kubelet=Service())).pending[0].message


@pytest.mark.parametrize(
    ("expires", "left", "what"),
    [
        (1_700_000_000, -4, "ended 3 days ago"),
        (1_700_000_000, -2, "ended a day ago"),
        (1_700_000_000, -1, "ended less than a day ago"),
        (0, -20_000, "is not there"),
    ],
)
def test_a_member_whose_certificate_is_over_is_reported_and_not_joined_again(
    expires: int, left: int, what: str
) -> None:
    joined, kubelet = JOINED._replace(expires=expires), RUNNING._replace(active="failed")
    now = KEPT._replace(joined=joined, left=left, node=None, kubelet=kubelet)
    (step,) = planned(now).steps
    assert (step.kind, step.retry) == ("fail", False)
    assert what in step.text
    assert "state: absent" in step.text
    assert "delete the node gpu-01" in step.text
    assert planned(now).pending == ()


def test_a_certificate_that_nobody_renews_is_a_note() -> None:
    found = planned(KEPT._replace(left=5))
    assert found.steps == ()
    assert "ends in 5 days and was not renewed" in found.notes[0]
