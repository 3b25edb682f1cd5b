# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is due on a member: its Node registered again, let pods come, labelled; or what only an admin can do."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, Step, fail, run
from .kube_kept import REGISTER, UNCORDON, Kept
from .kube_node import address, render
from .kube_seen import SERVICE, Node
from .kubectl import TIMEOUT, kubectl
from .systemd import control

REGISTRATION = 60.0  # seconds for a kubelet to register its Node


def dead(now: Kept) -> Step:
    """Say what an admin has to do: no pass joins a member whose credentials are dead again by itself."""
    joined = now.joined
    if joined.expires:
        since = (now.now - joined.expires) // 86_400
        ago = f"{since} days" if since > 1 else "a day" if since else "less than a day"
        what = f"{joined.certificate or 'in kubelet.conf'} ended {ago} ago by this machine's clock"
    else:
        what = f"{joined.certificate or 'in kubelet.conf'} is not there"
    node = joined.node or "of this machine"
    return fail(
        "keep the kubelet's client certificate",
        f"this machine has joined {joined.server}, but the kubelet's client certificate {what}, so that the cluster "
        f"does not know it any more: have an admin of the cluster delete the node {node} and make "
        "a new join token, take k8s-join out of the section (state: absent) and converge, then put it back with the "
        "token",
        retryable=False,
    )


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


def uncordon(todo: Todo, node: Node, now: Kept) -> Node:
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


def label(todo: Todo, due: dict[str, str], gone: list[str], node: Node, now: Kept) -> None:
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
