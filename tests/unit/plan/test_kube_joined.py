# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recorded of a join: what the Node shows, since one that was there before keeps its own labels and taints."""

from __future__ import annotations

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_joined import settle
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_kept import Kept
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_membership import parse
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    CLEAN,
    RECORD,
    Joined,
    Membership,
    Node,
    Settings,
    Taint,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service

SERVER, PIN, NODE = "https://10.0.0.1:6443", "ab" * 32, "gpu-01"
OURS, OTHERS = Taint("gpu", "yes", "NoSchedule"), Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
MISSING = Taint("gpu", "yes", "NoExecute")
WANT = Settings(SERVER, "10.0.0.1:6443", PIN, labels={"team": "ml", "pool": "a"}, taints=(OURS, MISSING))


def settled(node: Node | None) -> tuple[Membership, ...]:
    """What is recorded of a machine whose Node is this one."""
    joined = Joined("https://10.77.0.1:6443", (PIN,), node=NODE, expires=2_000_000_000)
    todo = Todo()
    assert settle(todo, WANT, Kept(joined, node, None, Service("loaded", "active", "enabled")), Past()) is (
        node is not None
    )
    records = [step for step in todo.plan().steps if step.path == RECORD]
    assert [step.pays for step in records] == [(CLEAN,)] * len(records)
    found = tuple(parse(step.text) for step in records)
    assert [membership.uid for membership in found] == [node.uid for membership in found if node]
    return tuple(membership._replace(uid="") for membership in found)


def test_what_was_asked_for_and_is_there_is_ours() -> None:
    node = Node(NODE, {"team": "ml", "pool": "a", "kubernetes.io/os": "linux"}, (OURS, MISSING, OTHERS), uid="1f2e")
    assert settled(node) == (Membership(SERVER, PIN, NODE, {"team": "ml", "pool": "a"}, (MISSING, OURS)),)


def test_what_a_node_had_before_is_not() -> None:
    node = Node(NODE, {"team": "theirs", "pool": "a"}, (OURS, OTHERS))
    assert settled(node) == (Membership(SERVER, PIN, NODE, {"pool": "a"}, (OURS,)),)


def test_without_a_node_nothing_is_recorded() -> None:
    assert settled(None) == ()
