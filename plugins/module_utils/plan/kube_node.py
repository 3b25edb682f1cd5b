# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Node of an answer that only a step predicts."""

from __future__ import annotations

import json

from .kube_seen import Node


def render(node: Node) -> str:
    """The Node as an answer of the API server, as `node_answer.facts` reads it."""
    return json.dumps(
        {
            "kind": "Node",
            "metadata": {"name": node.name, "uid": node.uid, "labels": dict(node.labels)},
            "spec": {"taints": [dict(taint._asdict()) for taint in node.taints], "unschedulable": node.unschedulable},
            "status": {"conditions": [{"type": "Ready", "status": "True" if node.ready else "False"}]},
        }
    )
