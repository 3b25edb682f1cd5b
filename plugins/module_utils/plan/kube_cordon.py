# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kube-node: whether pods may come to this machine's Node, around a reboot, and which cordon is ours.

No unit of a section. Before we cordon, root's record says so, since the Node does not tell who did it. Only what the
record names is ever let go again: after the reboot, or by the run that follows one that was killed. A cordon that
others set stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.plan import Past, Plan, Todo
from ..core.state import STATE, parse, render
from ..core.step import Effect, Step, remove, run, write
from . import kube_node, kube_pods, node_answer
from .kube_seen import Joined, Node
from .kubectl import TIMEOUT, kubectl

NAME = "kube-node"
RECORD = f"{STATE}/kube-node.json"
CORDONED, DRAINED, SCHEDULABLE = "cordoned", "drained", "schedulable"
DRAIN = "drain the node for a reboot"  # what may come to nothing
PODS = "pods"  # the lane
US, OTHERS = "us", "others"
LOST = "of a Node that stays cordoned it is then not known that the cordon is ours: kubectl uncordon it by hand"


class Settings(NamedTuple):
    """What the Node is to be, and the seconds that its pods have to go."""

    state: str
    timeout: int = 300


class Ours(NamedTuple):
    """The Node that we cordoned, by name and uid."""

    node: str
    uid: str


class Now(NamedTuple):
    """The cluster that this machine is a member of, its Node, and our record; None each where there is none.

    `pods`, the names of pods that an eviction takes away, raise where the API server does not tell of them.
    """

    joined: Joined | None = None
    node: Node | None = None
    record: Ours | None = None
    pods: tuple[str, ...] = ()


def check(given: Mapping[str, Any]) -> Settings:
    """The module's options, which Ansible has checked."""
    return Settings(given["state"], given["timeout"])


def parse_record(text: str) -> Ours:
    """Our record; raises StepFailed for one that is damaged."""
    found = parse(RECORD, text, lambda it: isinstance(it.get("node"), str) and isinstance(it.get("uid"), str), LOST)
    return Ours(found["node"], found["uid"])


def cordoned_by(node: Node | None, record: Ours | None) -> str | None:
    """Who keeps pods from the Node: "us", "others", or None for nobody. A Node that was made anew is not ours."""
    if node is None or not node.unschedulable:
        return None
    return US if record == Ours(node.name, node.uid) else OTHERS


def plan(want: Settings, now: Now, past: Past) -> Plan:
    """Cordon and drain, or let pods come again; waits, as Busy, where that is not ours to do or comes to nothing."""
    todo = Todo()
    who = cordoned_by(now.node, now.record)
    todo.found("node", now.node.name if now.node else None)
    todo.found("cordoned_by", who)
    if now.joined is None or now.node is None:
        _forget(todo, now)
        what = "is in no cluster" if now.joined is None else f"has no Node in the cluster at {now.joined.server}"
        todo.note(f"this machine {what}, so there is nothing to cordon")
    elif want.state == SCHEDULABLE:
        _let_go(todo, now, now.joined, now.node, who)
    elif who == OTHERS:
        todo.wait(
            "Busy",
            f"the node {now.node.name} is cordoned, and not by us, so it stays as it is: have whoever did it let it go "
            f"(kubectl uncordon {now.node.name}), and run again",
        )
    else:
        _close(todo, want, now, now.joined, now.node, past)
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """As for schedulable: what is ours goes."""
    return plan(Settings(SCHEDULABLE), now, past)


def _close(todo: Todo, want: Settings, now: Now, joined: Joined, node: Node, past: Past) -> None:
    if DRAIN in past.vain:
        _give_up(todo, want, now, joined, node, past)
        return
    ours = Ours(node.name, node.uid)
    if now.record != ours:
        text = render(dict(ours._asdict()))
        todo.add(write(RECORD, text, f"remember that the node {node.name} is cordoned by us", mode=0o600))
    if not node.unschedulable:
        todo.add(_schedulable(joined, node, "cordon", f"let no more pods come to the node {node.name} (cordon)"))
    if want.state == DRAINED:
        with todo.lane(PODS):  # which may not be known, where the cordon is all the same
            if now.pods:
                todo.add(_drain(joined, node, now.pods, want.timeout))


def _drain(joined: Joined, node: Node, pods: tuple[str, ...], timeout: int) -> Step:
    """Evict them, and wait until they have gone: kubectl may end before, as no node may ask for a pod that is gone."""
    from .kube_clean import OTHERS as NO_DAEMONS

    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", NO_DAEMONS, f"--timeout={timeout}s")
    return run(
        kubectl("drain", node.name, *options),
        f"evict the {len(pods)} pod{'' if len(pods) == 1 else 's'} of the node {node.name} (drain)",
        ok=(0, 1),
        timeout=timeout + 60.0,
        disruption="service",
        tries=DRAIN,
        barrier=True,
        settle=float(timeout),
        effects=(Effect("answers", f"GET {kube_pods.address(joined.server, node.name)}", '{"items": []}'),),
    )


def _give_up(todo: Todo, want: Settings, now: Now, joined: Joined, node: Node, past: Past) -> None:
    """Pods that do not go: the Node is as it was before, and the machine is not to be rebooted."""
    _let_go(todo, now, joined, node, cordoned_by(node, now.record))
    with todo.lane(PODS):
        _say_who_stays(todo, want, now, node, past.tried.get(DRAIN) or "see their disruption budgets")


def _say_who_stays(todo: Todo, want: Settings, now: Now, node: Node, said: str) -> None:
    left = ", ".join(now.pods[:5]) + (f" and {len(now.pods) - 5} more" if len(now.pods) > 5 else "")
    if not now.pods:
        todo.wait("Busy", f"the pods of the node {node.name} went too late, so it is let go again: run again")
        return
    todo.wait(
        "Busy",
        f"{left} did not go from the node {node.name} in {want.timeout} seconds, so that it is let go again ({said}): "
        "have their owners let them go, or give them more time, and run again",
    )


def _let_go(todo: Todo, now: Now, joined: Joined, node: Node, who: str | None) -> None:
    if who == US:
        todo.add(_schedulable(joined, node, "uncordon", f"let pods come to the node {node.name} again (uncordon)"))
    elif who == OTHERS:
        todo.note(f"the node {node.name} is cordoned, and not by us: it stays as it is")
    _forget(todo, now)
    if not node.ready:
        todo.wait("NotReady", f"the node {node.name} is not ready: see journalctl -u kubelet on this machine")


def _forget(todo: Todo, now: Now) -> None:
    if now.record is not None:
        todo.add(remove(RECORD, f"forget that the node {now.record.node} was cordoned by us"))


def _schedulable(joined: Joined, node: Node, verb: str, action: str) -> Step:
    then = node._replace(unschedulable=verb == "cordon")
    shown = Effect("answers", f"GET {node_answer.address(joined.server, node.name)}", kube_node.render(then))
    return run(kubectl(verb, node.name), action, timeout=TIMEOUT, effects=(shown,))


def shown(node: Node, record: Ours | None) -> dict[str, Any]:
    """The Node as a fact of the host."""
    is_noted = record == Ours(node.name, node.uid)
    return {
        "name": node.name,
        "ready": node.ready,
        "cordoned_by": cordoned_by(node, record),
        "remembered": is_noted,
    }
