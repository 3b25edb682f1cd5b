# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is due on a member: its Node registered again, let pods come, labelled, and recorded."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, run
from .kube_kept import REGISTER, UNCORDON, Kept
from .kube_node import render
from .kube_seen import DOMAIN, SERVICE, Membership, Node
from .kubectl import TIMEOUT, kubectl
from .node_answer import address
from .systemd import control

REGISTRATION = 60.0  # seconds for a kubelet to register its Node


def register(todo: Todo, now: Kept, past: Past) -> None:
    """A kubelet registers its Node when it starts, and never again."""
    name = now.joined.node
    if not now.kubelet.runs:
        todo.wait("NotReady", f"{now.joined.server} has no node {name}, which {SERVICE} registers once it runs")
    elif REGISTER in past.tried:
        todo.wait(
            "NotReady",
            f"{now.joined.server} has no node {name}, though {SERVICE} was started again to register it: see its log "
            f"(journalctl -u {SERVICE}) and whether an admin deletes the node",
        )
    else:
        todo.add(
            control(
                "restart",
                SERVICE,
                f"restart {SERVICE}, so that it registers the node {name}, which is not there",
                barrier=True,
                settle=REGISTRATION,
                tries=REGISTER,
                effects=(Effect("program", _get(now, name), f"{SERVICE} has registered the node {name}"),),
            )
        )


def tell(todo: Todo, node: Node, now: Kept, past: Past) -> Node:
    """Say why pods do not come, or let them come again; the Node as it then is."""
    if not node.ready:
        todo.note(
            f"the node {node.name} is not Ready yet: see what the cluster says of it (kubectl describe node "
            f"{node.name}; without a network plugin no node becomes Ready)"
        )
    if not node.unschedulable:
        return node
    if UNCORDON in past.owed:
        return _uncordon(todo, node, now)
    todo.note(
        f"the node {node.name} takes no new pods: an admin has cordoned it, or it was cordoned when this "
        f"machine was handed back before (kubectl uncordon {node.name})"
    )
    return node


def _uncordon(todo: Todo, node: Node, now: Kept) -> Node:
    """A removal that had begun took pods away from here; the unit is back."""
    then = node._replace(unschedulable=False)
    todo.add(
        run(
            kubectl("uncordon", node.name),
            f"let pods come to the node {node.name} again (uncordon)",
            timeout=TIMEOUT,
            pays=(UNCORDON,),
            effects=(Effect("answers", _get(now, node.name), render(then)),),
        )
    )
    return then


def relabel(
    todo: Todo,
    labels: dict[str, str],
    due: dict[str, str],
    gone: list[str],
    exact: Membership | None,
    node: Node,
    now: Kept,
) -> None:
    """The record, the Node's labels, and the record as it then is to be (`exact`; None: it was not us who joined)."""
    from .kube_membership_write import record

    recorded = now.record
    if exact and recorded and not due.keys() <= recorded.labels.keys():
        recorded = exact._replace(labels={**{key: node.labels[key] for key in gone}, **labels})
        todo.add(record(recorded))
    if due or gone:
        _label(todo, due, gone, node, now)
    if exact and exact != recorded:
        todo.add(record(exact))
    if (due or gone) and now.record is None:
        todo.note(
            f"this machine was not joined by us: labels of the node {node.name} that leave the settings later stay, "
            f"unless they are below {DOMAIN}"
        )


def _label(todo: Todo, due: dict[str, str], gone: list[str], node: Node, now: Kept) -> None:
    """One request for all labels that are `due`, with their values, or have to be `gone`."""
    then = {key: value for key, value in {**node.labels, **due}.items() if key not in gone}
    words = [f"{key}={value}" for key, value in sorted(due.items())]
    parts = [*([f"set {', '.join(words)}"] if due else []), *([f"remove {', '.join(gone)}"] if gone else [])]
    todo.add(
        run(
            kubectl("label", "node", node.name, *words, *(f"{key}-" for key in gone), "--overwrite"),
            f"label the node {node.name}: {' and '.join(parts)}",
            timeout=TIMEOUT,
            effects=(Effect("answers", _get(now, node.name), render(node._replace(labels=then))),),
        )
    )


def _get(now: Kept, node: str) -> str:
    return f"GET {address(now.joined.server, node)}"
