# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that has joined stays a member: its kubelet runs, its Node has our labels, and taints that differ are told.

Nothing here joins again: a member whose credentials are dead, or whose Node an admin deletes again, is reported.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.plan import Past, Todo
from .kube_labels import ALLOWED, Gpus, wanted
from .kube_seen import DOMAIN, SERVICE, Joined, Membership, Node, Settings, Taint
from .systemd import Service, control

KUBELET = "kubelet"  # the lanes
LABELS = "labels"
START = f"start {SERVICE}"  # what may come to nothing
REGISTER = "register the node"
UNCORDON = "uncordon the node"  # the debt of a removal that was not finished
SETTLE = 30.0  # seconds for a kubelet that was started to stay up
SOON = 7 * 86_400  # seconds: a kubelet renews its certificate, of a year, long before
DRIFT = "KubernetesTaintsDrift"


class Kept(NamedTuple):
    """What a member shows. `node` is None where there is no such Node, a value that raises where it cannot be asked.

    `record` is None where it was not us who joined this machine; `now` is unix time; `gpus` None where they do not
    answer; `said` is the last that a kubelet said which does not run; `flags` is the text of KUBELET_FLAGS.
    """

    joined: Joined
    node: Node | None
    record: Membership | None
    kubelet: Service
    now: int
    gpus: Gpus | None = Gpus()
    said: str = ""
    flags: str = ""


def is_dead(joined: Joined, now: int) -> bool:
    """Whether the kubelet's client certificate is gone or over: its API server knows it no more."""
    return joined.expires <= now


def plan(todo: Todo, want: Settings, now: Kept, past: Past) -> None:
    """The kubelet in one lane, its Node in another: that one is away does not keep the other from being mended."""
    if now.record is not None and now.record.pin not in now.joined.pins:
        now = now._replace(record=None)  # of a membership before, and this one is somebody else's
    with todo.lane(KUBELET):
        if is_dead(now.joined, now.now):
            from .kube_kept_change import dead

            todo.add(dead(now))
            return
        _kubelet(todo, now, past)
    with todo.lane(LABELS):
        _node(todo, want, now, past)


# -- the kubelet


def _kubelet(todo: Todo, now: Kept, past: Past) -> None:
    kubelet = now.kubelet
    if kubelet.load == "not-found":
        todo.wait("NotReady", f"there is no {SERVICE}, though this machine has joined: install kubelet and run again")
        return
    if kubelet.is_masked:
        from .kube_entry import masked

        todo.add(masked())
        return
    if kubelet.enabled in ("disabled", "enabled-runtime"):
        todo.add(control("enable", SERVICE))
    left = (now.joined.expires - now.now) // 86_400
    if now.joined.expires - now.now < SOON:
        todo.note(
            f"the kubelet's client certificate ends in {left} days and was not renewed: see that the cluster approves "
            "its certificate requests"
        )
    if kubelet.runs:
        return
    if kubelet.active == "activating" or START in past.vain:
        said = past.given.masked(past.tried.get(START) or now.said) or "nothing"
        todo.wait(
            "NotReady",
            f"{SERVICE} does not stay up ({kubelet.active or 'unknown'}), and its last words are: {said}: mend what "
            f"they name (journalctl -u {SERVICE}) and run again",
        )
        return
    start = control("start", SERVICE, barrier=True, settle=SETTLE, tries=START)
    todo.add(start._replace(retry=START in past.tried))


# -- its Node


def _node(todo: Todo, want: Settings, now: Kept, past: Past) -> None:
    node = now.node
    if node is None:
        from .kube_kept_change import register

        register(todo, now, past)
        return
    if not node.ready:  # a Node that is not known raises here
        todo.note(
            f"the node {node.name} is not Ready yet: see what the cluster says of it (kubectl describe node "
            f"{node.name}; without a network plugin no node becomes Ready)"
        )
    if node.unschedulable:
        if UNCORDON in past.owed:
            from .kube_kept_change import uncordon

            node = uncordon(todo, node, now)
        else:
            todo.note(
                f"the node {node.name} takes no new pods: an admin has cordoned it, or it was cordoned when this "
                f"machine was handed back before (kubectl uncordon {node.name})"
            )
    if now.record is not None and now.record.uid not in ("", node.uid):
        from .kube_flags import registered_again

        now = now._replace(record=registered_again(now.record, now.flags, node))
    _labels(todo, want, node, now, past)
    _taints(todo, want, node, now)


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
    recorded = now.record
    if exact and recorded and not due.keys() <= ours.keys():
        recorded = exact._replace(labels={**{key: node.labels[key] for key in gone}, **labels})
        _record(todo, recorded)
    if due or gone:
        from .kube_kept_change import label

        label(todo, due, gone, node, now)
    if exact and exact != recorded:
        _record(todo, exact)
    if (due or gone) and now.record is None:
        todo.note(
            f"this machine was not joined by us: labels of the node {node.name} that leave the settings later stay, "
            f"unless they are below {DOMAIN}"
        )


def _is_set_at_starts(key: str, node: Node, now: Kept) -> bool:
    """Whether it is a label of a join of ours that the kubelet sets again on its Node whenever it starts."""
    if now.record is None or key not in ALLOWED or f"{key}=" not in now.flags:
        return False
    from .kube_flags import registers

    return registers(now.flags, key, node.labels[key])


def _exact(want: Settings, node: Node, labels: dict[str, str], now: Kept) -> Membership | None:
    """The record as it is to be once the labels are; None where we have none of this machine."""
    if now.record is None:
        return None
    taints: tuple[Taint, ...] = ()
    if want.taints or now.record.taints:
        from .kube_taints import registered

        taints = registered(want.taints, now.record.taints, node.taints)
    return Membership(want.api_server, want.pin, node.name, labels, taints, node.uid if now.record.uid else "")


def _record(todo: Todo, membership: Membership) -> None:
    from .kube_membership import record

    todo.add(record(membership))


def _taints(todo: Todo, want: Settings, node: Node, now: Kept) -> None:
    """Report taints that differ: no kubelet may change those of its Node."""
    before = now.record.taints if now.record else ()
    if not (want.taints or before):
        return
    from .kube_taints import command, drift

    differing = drift(want.taints, before, node.taints)
    if differing.due or differing.gone:
        todo.condition(
            DRIFT,
            "NodeRestriction",
            f"the taints of the node {node.name} are not those of the settings, and a node may not change its own: an "
            f"admin of the cluster runs {command(node.name, want.taints, differing.gone)}",
        )
