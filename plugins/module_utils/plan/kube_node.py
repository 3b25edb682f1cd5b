# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Node as the API server shows it: where it is asked for, and the few of its fields that matter here."""

from __future__ import annotations

import json
from typing import Any

from .kube_seen import Node, Taint

TIMEOUT = 10.0  # seconds for an answer of the API server


def address(server: str, node: str) -> str:
    """Where the Node is, also as effects name it ("GET <address>"); `server` as kubelet.conf has it."""
    return f"{server.rstrip('/')}/api/v1/nodes/{node}"


def pods_address(server: str, node: str) -> str:
    """Where the pods of the Node are; a kubelet may list no others."""
    return f"{server.rstrip('/')}/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"


def parse(text: str) -> Node:
    """The Node in an answer of the API server; raises ValueError for what is none."""
    found = _mapping(_loaded(text), "it is no object")
    metadata = _mapping(found.get("metadata"), "it has no metadata")
    spec = _mapping(found.get("spec") or {}, "its spec is no object")
    status = _mapping(found.get("status") or {}, "its status is no object")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("it has no name")
    conditions = {str(one.get("type")): one.get("status") for one in _list(status.get("conditions"))}
    return Node(
        name,
        {str(key): str(value) for key, value in _mapping(metadata.get("labels") or {}, "its labels are none").items()},
        tuple(
            Taint(str(one.get("key") or ""), str(one.get("value") or ""), str(one.get("effect") or ""))
            for one in _list(spec.get("taints"))
        ),
        ready=conditions.get("Ready") == "True",
        unschedulable=spec.get("unschedulable") is True,
        uid=str(metadata.get("uid") or ""),
    )


def render(node: Node) -> str:
    """The Node as an answer that `parse` reads, for what a step predicts."""
    return json.dumps(
        {
            "kind": "Node",
            "metadata": {"name": node.name, "uid": node.uid, "labels": dict(node.labels)},
            "spec": {"taints": [dict(taint._asdict()) for taint in node.taints], "unschedulable": node.unschedulable},
            "status": {"conditions": [{"type": "Ready", "status": "True" if node.ready else "False"}]},
        }
    )


def evictable(text: str) -> tuple[str, ...]:
    """Pods ("namespace/name") of a list that an eviction takes away; raises ValueError for what is no list of pods.

    Those of a DaemonSet come back at once, static ones are files of the kubelet's, and those that have ended are none.
    """
    items = _mapping(_loaded(text), "it is no object").get("items")
    if items is not None and not isinstance(items, list):
        raise ValueError("its items are no list")
    found = []
    for pod in _list(items):
        metadata = _mapping(pod.get("metadata"), "a pod has no metadata")
        owners = {str(owner.get("kind")) for owner in _list(metadata.get("ownerReferences"))}
        annotations = _mapping(metadata.get("annotations") or {}, "a pod's annotations are none")
        is_static = "kubernetes.io/config.mirror" in annotations
        phase = _mapping(pod.get("status") or {}, "a pod's status is no object").get("phase")
        if "DaemonSet" not in owners and not is_static and phase not in ("Succeeded", "Failed"):
            found.append(f"{metadata.get('namespace')}/{metadata.get('name')}")
    return tuple(sorted(found))


def is_absent(text: str) -> bool:
    """Whether an answer with 404 is the API server's word that there is no such Node, not another's about a page."""
    try:
        found = _mapping(_loaded(text), "it is no object")
    except ValueError:
        return False
    details = found.get("details")
    return found.get("kind") == "Status" and isinstance(details, dict) and details.get("kind") == "nodes"


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _mapping(found: Any, fault: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(fault)
    return found


def _list(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
