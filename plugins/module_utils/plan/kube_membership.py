# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's record of a join of ours, `/var/lib/bcd-hostconfig/k8s-join.json`: what may be reset, and what is ours there.

A machine without it was joined by somebody else, and nothing of it is taken back.
"""

from __future__ import annotations

from typing import Any

from ..core import state
from .kube_seen import RECORD, Membership, Taint

LOST = "this machine is then never reset: kubeadm reset by hand takes it out of its cluster"
TEXTS = ("api_server", "ca_cert_sha256", "node")


def parse(text: str) -> Membership:
    """What the text of the record says; raises StepFailed, not retryable, for one that is damaged."""
    found = state.parse(RECORD, text, _is_whole, LOST)
    taints = tuple(Taint(one["key"], one["value"], one["effect"]) for one in found["taints"])
    head = (found["api_server"], found["ca_cert_sha256"], found["node"])
    return Membership(*head, found["labels"], taints, found.get("uid", ""))


def _is_whole(found: dict[str, Any]) -> bool:
    labels, taints = found.get("labels"), found.get("taints")
    return (
        all(isinstance(found.get(name), str) and found[name] for name in TEXTS)
        and isinstance(found.get("uid", ""), str)
        and isinstance(labels, dict)
        and all(isinstance(value, str) for value in labels.values())
        and isinstance(taints, list)
        and all(isinstance(taint, dict) and _is_texts(taint, Taint._fields) for taint in taints)
    )


def _is_texts(mapping: dict[str, Any], names: tuple[str, ...]) -> bool:
    return all(isinstance(mapping.get(name), str) for name in names)
