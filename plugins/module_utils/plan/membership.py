# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a join of ours: what is handed back once, and which labels and taints of the Node are ours."""

from __future__ import annotations

from typing import Any

from ..core.state import parse
from ..core.state import render as as_record
from .kube_seen import RECORD, Membership, Taint

LOST = "what it says of this machine's membership is lost then, and the machine is not handed back by itself"


def render(membership: Membership) -> str:
    """The record as the text of its file."""
    return as_record(
        {
            "api_server": membership.api_server,
            "pin": membership.pin,
            "node": membership.node,
            "labels": dict(sorted(membership.labels.items())),
            "taints": [taint._asdict() for taint in membership.taints],
        }
    )


def read(text: str) -> Membership:
    """The record of the text of its file; raises StepFailed, not retryable, for one that is damaged."""
    found = parse(RECORD, text, _is_whole, LOST)
    taints = tuple(Taint(**taint) for taint in found["taints"])
    return Membership(found["api_server"], found["pin"], found["node"], found["labels"], taints)


def _is_whole(found: dict[str, Any]) -> bool:
    texts = [found.get(key) for key in ("api_server", "pin", "node")]
    labels, taints = found.get("labels"), found.get("taints")
    if not (isinstance(labels, dict) and isinstance(taints, list)):
        return False
    texts += labels.values()
    for taint in taints:
        if not isinstance(taint, dict) or set(taint) != set(Taint._fields):
            return False
        texts += taint.values()
    return all(isinstance(text, str) for text in texts)
