# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows a join of ours: it has succeeded when the Node is seen, and what it shows is recorded then."""

from __future__ import annotations

from typing import Any

from ..core.errors import NotReady
from ..core.plan import Past, Todo
from .kube_flags import registered_again
from .kube_join import LANE, OUTCOME
from .kube_labels import wanted
from .kube_membership_write import record
from .kube_seen import CLEAN, Membership, Node, Settings
from .kube_taints import registered
from .unit_names import K8S_JOIN as UNIT


def settle(todo: Todo, want: Settings, now: Any, past: Past) -> bool:
    """Plan the record of the membership, of a member's snapshot; whether it is planned.

    kubeadm calls a machine joined whose kubelet then never registers, and a Node that was there before has kept its own
    labels and taints: what counts is what the Node shows. What it has registered with is ours also where the settings
    have changed before it is recorded.
    """
    seen: list[Membership] = []
    with todo.lane(LANE):  # which gives the Node its time
        if now.node is None:
            raise NotReady(
                f"{UNIT}: this machine has joined {now.joined.server}, which has no Node {now.joined.node} yet (404): "
                "it is looked for again; if it does not come, see journalctl -u kubelet"
            )
        labels = wanted(want, past.given, now.gpus, now.node.labels)
        seen.append(registered_again(_shown(want, now.node, labels), now.flags, now.node))
    with todo.lane(OUTCOME):  # that of the join is over where kubeadm gave up before its kubelet did
        todo.add(*(record(membership, pays=(CLEAN,)) for membership in seen))
    return bool(seen)


def _shown(want: Settings, node: Node, labels: dict[str, str]) -> Membership:
    """What there is of ours on the Node."""
    labels = {key: value for key, value in labels.items() if node.labels.get(key) == value}
    taints = registered(want.taints, (), node.taints)
    return Membership(want.api_server, want.pin, node.name, labels, taints, node.uid)
