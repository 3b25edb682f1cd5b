# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows a join of ours: it has succeeded when the Node is seen, and what it shows is recorded then."""

from __future__ import annotations

from typing import Any

from ..core.errors import NotReady
from ..core.plan import Todo
from .kube_entry import CLEAN
from .kube_join import LANE
from .kube_membership import record
from .kube_seen import Membership, Settings
from .kube_taints import registered
from .unit_names import K8S_JOIN as UNIT


def settle(todo: Todo, want: Settings, now: Any) -> bool:
    """Plan the record of the membership, of a member's snapshot; whether it is planned.

    kubeadm calls a machine joined whose kubelet then never registers, and a Node that was there before has kept its own
    labels and taints: what counts is what the Node shows.
    """
    joined = now.joined
    with todo.lane(LANE):
        node = now.node
        if node is None:
            raise NotReady(
                f"{UNIT}: this machine has joined {joined.server}, which has no Node {joined.node} yet (404): it is "
                "looked for again; if it does not come, see journalctl -u kubelet"
            )
        labels = {key: value for key, value in want.labels.items() if node.labels.get(key) == value}
        taints = registered(want.taints, (), node.taints)
        membership = Membership(want.api_server, want.pin, node.name, labels, taints)
        todo.add(record(membership, pays=(CLEAN,)))
        return True
    return False
