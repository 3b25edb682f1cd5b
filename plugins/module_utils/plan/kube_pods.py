# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods of a Node as the API server lists them: where, and which of them an eviction takes away."""

from __future__ import annotations

from .node_answer import listed, loaded, mapping


def address(server: str, node: str) -> str:
    """Where the pods of the Node are; a kubelet may list no others."""
    return f"{server.rstrip('/')}/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"


def evictable(text: str) -> tuple[str, ...]:
    """Pods ("namespace/name") of a list that an eviction takes away; raises ValueError for what is no list of pods.

    Those of a DaemonSet come back at once, static ones are files of the kubelet's, and those that have ended are none.
    """
    items = mapping(loaded(text), "it is no object").get("items")
    if items is not None and not isinstance(items, list):
        raise ValueError("its items are no list")
    found = []
    for pod in listed(items):
        metadata = mapping(pod.get("metadata"), "a pod has no metadata")
        owners = {str(owner.get("kind")) for owner in listed(metadata.get("ownerReferences"))}
        annotations = mapping(metadata.get("annotations") or {}, "a pod's annotations are none")
        is_static = "kubernetes.io/config.mirror" in annotations
        phase = mapping(pod.get("status") or {}, "a pod's status is no object").get("phase")
        if "DaemonSet" not in owners and not is_static and phase not in ("Succeeded", "Failed"):
            found.append(f"{metadata.get('namespace')}/{metadata.get('name')}")
    return tuple(sorted(found))
