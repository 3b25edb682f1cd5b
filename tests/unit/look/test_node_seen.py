# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a Node is a difference: not what its kubelet, controllers and admins say of it all day."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.node_seen import node_seen
from tests.unit.fake_host import FakeHost

URL = "https://10.0.0.1:6443/api/v1/nodes/gpu-01"
FLAGS = 'KUBELET_KUBEADM_ARGS="--node-labels=topology.kubernetes.io/zone=a --register-with-taints=hw=new:NoExecute"\n'
# As a real API server shows a Node: what others say of it is left of the comments.
NODE: dict[str, Any] = {
    "kind": "Node",
    "metadata": {
        "name": "gpu-01",
        "uid": "6d1b",
        "resourceVersion": "1001",
        "labels": {
            "kubernetes.io/os": "linux",
            "nvidia.com/gfd.timestamp": "1764000000",
            "tier": "gpu",  # of the settings
            "bcd.dev/gpu.count": "8",  # ours
            "topology.kubernetes.io/zone": "a",  # of the kubelet's arguments
        },
        "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        "managedFields": [{"manager": "kubelet", "time": "2026-11-30T00:00:00Z"}],
    },
    "spec": {
        "taints": [
            {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"},
            {"key": "pool", "value": "b", "effect": "NoSchedule"},  # of the settings
            {"key": "hw", "value": "new", "effect": "NoExecute"},  # of the kubelet's arguments
        ]
    },
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-30T00:00:00Z"}],
        "images": [{"names": ["a"], "sizeBytes": 1}],
        "allocatable": {"memory": "1Gi"},
    },
}


def seen(node: Any, rc: int = 200, flags: str = FLAGS) -> dict[str, Any]:
    host = FakeHost()
    host.sites[URL] = Answer(rc, node if isinstance(node, str) else json.dumps(node), "Said")
    return host.sight(node_seen, URL, "PEM", "/pair.pem", ["bcd.dev/", "tier"], [["pool", "NoSchedule"]], flags)  # type: ignore[no-any-return]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The Node with another value at a path, in which numbers are places in lists."""
    found = copy.deepcopy(NODE)
    *way, last = (int(part) if part.isdigit() else part for part in path.split("|"))
    at: Any = found
    for part in way:
        at = at[part]
    at[last] = value
    return found


def test_it_is_what_our_units_depend_on() -> None:
    assert seen(NODE) == {
        "rc": 200,
        "name": "gpu-01",
        "uid": "6d1b",
        "labels": {"bcd.dev/gpu.count": "8", "tier": "gpu", "topology.kubernetes.io/zone": "a"},
        "taints": [["pool", "b", "NoSchedule"], ["hw", "new", "NoExecute"]],
        "ready": True,
        "unschedulable": False,
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata|resourceVersion", "1002"),
        ("metadata|labels|nvidia.com/gfd.timestamp", "1764000060"),
        ("metadata|labels|admins", "own"),
        ("metadata|annotations|cni", "10.0.0.0/24"),
        ("metadata|managedFields|0|time", "2026-11-30T00:05:00Z"),
        ("spec|taints|0|key", "node.kubernetes.io/disk-pressure"),
        ("status|conditions|0|lastHeartbeatTime", "2026-11-30T00:05:00Z"),
        ("status|images", []),
        ("status|allocatable|memory", "2Gi"),
    ],
)
def test_what_others_say_of_it_is_no_difference(path: str, value: Any) -> None:
    assert changed(path, value) != NODE
    assert seen(changed(path, value)) == seen(NODE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata|name", "gpu-02"),
        ("metadata|uid", "7e2c"),
        ("metadata|labels|tier", "cpu"),
        ("metadata|labels|bcd.dev/gpu.count", "7"),
        ("metadata|labels|bcd.dev/old", "y"),
        ("metadata|labels|topology.kubernetes.io/zone", "b"),
        ("spec|taints|1|value", "c"),
        ("spec|taints|2|value", "old"),
        ("spec|taints", []),
        ("spec|unschedulable", True),
        ("status|conditions|0|status", "Unknown"),
    ],
)
def test_what_a_plan_is_about_is_a_difference(path: str, value: Any) -> None:
    assert seen(changed(path, value)) != seen(NODE)


def test_labels_and_taints_that_nothing_names_are_left_out() -> None:
    bare = seen(NODE, flags="")
    assert bare["labels"] == {"bcd.dev/gpu.count": "8", "tier": "gpu"}
    assert bare["taints"] == [["pool", "b", "NoSchedule"]]


def test_other_answers_are_told_apart() -> None:
    status = {"kind": "Status", "details": {"kind": "nodes"}, "message": 'nodes "gpu-01"  not found'}
    assert seen(status, 404) == {"rc": 404, "said": 'nodes "gpu-01" not found', "is_absent": True}
    assert seen("<html>", 404) == {"rc": 404, "said": "Said", "is_absent": False}
    assert seen(status, 403)["is_absent"] is False
    assert seen("[" * 100_000, 500)["said"] == "Said"
    assert seen("{}") == {"rc": 200, "fault": "it has no metadata"}
