# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Node and its pods as the API server shows them, and root's record of a membership."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_membership_write as record
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_pods
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_membership import parse
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_node import render
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Membership, Node, Taint
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.node_answer import address, facts

SHOWN = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "gpu-01", "labels": {"kubernetes.io/os": "linux", "pool": ""}},
    "spec": {
        "podCIDR": "10.244.1.0/24",
        "unschedulable": True,
        "taints": [
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-30T00:00:00Z"},
        ],
    },
    "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]},
}
NODE = Node(
    "gpu-01",
    {"kubernetes.io/os": "linux", "pool": ""},
    (Taint("nvidia.com/gpu", "present", "NoSchedule"), Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")),
    ready=True,
    unschedulable=True,
)
FACTS = {
    "name": "gpu-01",
    "labels": {"kubernetes.io/os": "linux", "pool": ""},
    "taints": [["nvidia.com/gpu", "present", "NoSchedule"], ["node.kubernetes.io/unschedulable", "", "NoSchedule"]],
    "ready": True,
    "unschedulable": True,
    "uid": "",
}


def pod(name: str, owner: str = "", phase: str = "Running", **annotations: str) -> dict[str, Any]:
    owners = [{"kind": owner, "controller": True}] if owner else []
    metadata = {"namespace": "default", "name": name, "ownerReferences": owners, "annotations": annotations}
    return {"metadata": metadata, "status": {"phase": phase}}


def test_addresses() -> None:
    assert address("https://10.0.0.1:6443/", "gpu-01") == "https://10.0.0.1:6443/api/v1/nodes/gpu-01"
    assert kube_pods.address("https://[::1]:6443", "gpu-01") == (
        "https://[::1]:6443/api/v1/pods?fieldSelector=spec.nodeName%3Dgpu-01"
    )


def test_a_node_is_read_and_a_predicted_one_reads_the_same() -> None:
    assert facts(json.dumps(SHOWN)) == FACTS
    assert facts(render(NODE)) == FACTS


def test_a_node_of_which_little_is_known_yet() -> None:
    bare = {"name": "gpu-01", "labels": {}, "taints": [], "ready": False, "unschedulable": False, "uid": ""}
    assert facts('{"metadata": {"name": "gpu-01"}}') == bare
    waiting = {"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    assert facts(json.dumps(waiting))["ready"] is False


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("<html>", "no JSON"),
        ("[]", "it is no object"),
        ("{}", "it has no metadata"),
        ('{"metadata": {}}', "it has no name"),
        ('{"metadata": {"name": 1}}', "it has no name"),
        ('{"metadata": {"name": "a", "labels": []}, "spec": 1}', "its spec is no object"),
    ],
)
def test_what_is_no_node(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        facts(text)


def test_which_pods_an_eviction_takes_away() -> None:
    items = [
        pod("job", "Job"),
        pod("bare"),
        pod("db", "StatefulSet", "Pending"),
        pod("proxy", "DaemonSet"),
        pod("static", "Node", **{"kubernetes.io/config.mirror": "abc"}),
        pod("done", "Job", "Succeeded"),
        pod("broken", "Job", "Failed"),
    ]
    assert kube_pods.evictable(json.dumps({"kind": "PodList", "items": items})) == (
        "default/bare",
        "default/db",
        "default/job",
    )
    assert kube_pods.evictable('{"items": null}') == ()
    with pytest.raises(ValueError, match="no list"):
        kube_pods.evictable('{"items": 1}')


# -- the record


MEMBERSHIP = Membership("https://10.0.0.1:6443", "0" * 64, "gpu-01", {"pool": "a"}, (Taint("a", "", "NoExecute"),))


def test_the_record_reads_as_it_was_written_and_root_alone_reads_it() -> None:
    step = record.record(MEMBERSHIP)
    assert (step.path, step.mode) == ("/var/lib/bcd-hostconfig/k8s-join.json", 0o600)
    assert parse(step.text) == MEMBERSHIP
    assert json.loads(step.text)["version"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 2}',
        json.dumps({**json.loads(record.render(MEMBERSHIP)), "node": ""}),
        json.dumps({**json.loads(record.render(MEMBERSHIP)), "labels": {"a": 1}}),
        json.dumps({**json.loads(record.render(MEMBERSHIP)), "taints": [{"key": "a"}]}),
        json.dumps({**json.loads(record.render(MEMBERSHIP)), "taints": None}),
    ],
)
def test_a_damaged_record_is_a_fault_that_names_what_is_lost(text: str) -> None:
    with pytest.raises(StepFailed) as fault:
        parse(text)
    assert fault.value.retryable is False
    assert "k8s-join.json is not a record of version 1" in fault.value.message
    assert "kubeadm reset by hand" in fault.value.message
