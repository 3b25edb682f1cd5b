# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that has joined stays a member: its kubelet runs, its Node has our labels, and taints that differ are told.

Nothing here joins again: a member whose credentials are dead, or whose Node an admin deletes again, is reported.
"""

from __future__ import annotations

from ..core.plan import Past, Todo
from .kube_labels import Gpus, wanted
from .kube_seen import DOMAIN, SERVICE, Joined, Membership, Node, Settings, Taint
from .service_seen import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

KUBELET = "kubelet"  # the lanes
LABELS = "labels"
START = f"start {SERVICE}"  # what may come to nothing
REGISTER = "register the node"
UNCORDON = "uncordon the node"  # the debt of a removal that was not finished
SOON = 7  # days: a kubelet renews its certificate, of a year, long before


class Kept(NamedTuple):
    """What a member shows. `node` is None where there is no such Node, a value that raises where it cannot be asked;
    of its labels and taints it has those that matter here.

    `record` is None where it was not us who joined this machine; `left` are the whole days that the kubelet's
    certificate has left, at most SOON, and below 0 it is over; `gpus` None where they do not answer; `said` is the
    last that a kubelet said which does not run; `flags` is the text of KUBELET_FLAGS.
    """

    joined: Joined
    node: Node | None
    record: Membership | None
    kubelet: Service
    left: int = SOON
    gpus: Gpus | None = Gpus()
    said: str = ""
    flags: str = ""


def plan(todo: Todo, want: Settings, now: Kept, past: Past) -> None:
    """The kubelet in one lane, its Node in another: that one is away does not keep the other from being mended."""
    if now.record is not None and now.record.pin not in now.joined.pins:
        now = now._replace(record=None)  # of a membership before, and this one is somebody else's
    with todo.lane(KUBELET):
        if now.left < 0:
            from .kube_kept_kubelet import dead

            todo.add(dead(now))
            return
        kubelet = now.kubelet
        if now.left < SOON or not (kubelet.runs and kubelet.enabled == "enabled"):
            from .kube_kept_kubelet import keep_up

            keep_up(todo, now, past)
    with todo.lane(LABELS):
        _node(todo, want, now, past)


def _node(todo: Todo, want: Settings, now: Kept, past: Past) -> None:
    node = now.node
    if node is None:
        from .kube_kept_change import register

        register(todo, now, past)
        return
    if node.unschedulable or not node.ready:  # a Node that is not known raises here
        from .kube_kept_change import tell

        node = tell(todo, node, now, past)
    if now.record is not None and now.record.uid not in ("", node.uid):
        from .kube_flags import registered_again

        now = now._replace(record=registered_again(now.record, now.flags, node))
    _labels(todo, want, node, now, past)
    if want.taints or (now.record and now.record.taints):
        from .kube_taints import tell_drift

        tell_drift(todo, node, want.taints, now.record.taints if now.record else ())


def _labels(todo: Todo, want: Settings, node: Node, now: Kept, past: Past) -> None:
    """Labels as wanted; of the others only those go that we set before, or that are below our own domain.

    The record names a label before the Node has it, and until it is gone: a pass that dies leaves none behind.
    """
    labels = wanted(want, past.given, now.gpus, node.labels)
    due = {key: value for key, value in labels.items() if node.labels.get(key) != value}
    ours = now.record.labels if now.record else {}
    left = node.labels.keys() - labels.keys()
    gone = sorted(key for key in left if key in ours or key.startswith(DOMAIN) or _is_set_at_starts(key, node, now))
    exact = _exact(want, node, labels, now)
    if due or gone or exact != now.record:
        from .kube_kept_change import relabel

        relabel(todo, labels, due, gone, exact, node, now)


def _is_set_at_starts(key: str, node: Node, now: Kept) -> bool:
    """Whether it is a label of a join of ours that the kubelet sets again on its Node whenever it starts."""
    if now.record is None or f"{key}=" not in now.flags:
        return False
    from .kube_flags import registers
    from .label_rules import ALLOWED

    return key in ALLOWED and registers(now.flags, key, node.labels[key])


def _exact(want: Settings, node: Node, labels: dict[str, str], now: Kept) -> Membership | None:
    """The record as it is to be once the labels are; None where we have none of this machine."""
    if now.record is None:
        return None
    taints: tuple[Taint, ...] = ()
    if want.taints or now.record.taints:
        from .kube_taints import registered

        taints = registered(want.taints, now.record.taints, node.taints)
    return Membership(want.api_server, want.pin, node.name, labels, taints, node.uid if now.record.uid else "")
