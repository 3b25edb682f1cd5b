# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k8s-join: the machine becomes a worker of a Kubernetes cluster, stays one, and is handed back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.errors import NotKnownYet, Refused, StepFailed
from ..core.plan import Past, Plan, Todo
from .allowed_clusters import refuse_others
from .k8s_join_settings import FIELDS, check
from .kube_seen import CLEAN, CONTROL_PLANE, KUBELET_CONF, Joined, Settings
from .node_name import node_name
from .unit_names import K8S_JOIN as UNIT

__all__ = ("FIELDS", "Going", "Now", "Parts", "Settings", "absent", "check", "plan")
RESET = "hand it back by hand (kubeadm reset) first"


class Parts(NamedTuple):
    """What the parts of the unit saw, each the snapshot of its own planner, or a value that raises when it is used."""

    software: Any
    kernel: Any
    swap: Any
    containerd: Any


class Now(NamedTuple):
    """What a machine shows of being a worker.

    `allowed` is what root's configuration allows to join; `token_files` are files in which a killed pass has left the
    token; `others` paths of other distributions. `swap_allowed` and `cgroupfs` are what a member's kubelet is
    configured for, `kept` is the snapshot of a member, `entry` of a machine that is none.
    """

    allowed: Any
    host_name: str
    control_plane: bool
    parts: Parts
    swap_allowed: bool = False
    cgroupfs: bool = False
    token_files: tuple[str, ...] = ()
    joined: Joined | None = None
    kept: Any = None
    entry: Any = None
    others: tuple[str, ...] = ()


class Going(NamedTuple):
    """What a machine shows that is to be handed back; `leaving` is the snapshot of its membership."""

    leaving: Any
    parts: Parts
    token_files: tuple[str, ...] = ()


# -- what is refused before anything is written


def _refuse(want: Settings, now: Now, past: Past) -> str:
    """The Node's name; raises Refused for a machine or settings that no pass may go on with."""
    refuse_others(want, now.allowed)
    if now.control_plane:
        raise Refused(
            f"{UNIT}: this machine is a control plane ({CONTROL_PLANE}), and bcd makes workers only: take the unit off"
        )
    name = node_name(now.host_name)
    if now.joined is not None:
        _refuse_stranger(want, now.joined, name)
    elif now.others:
        raise Refused(
            f"{UNIT}: this machine is or was a node of another distribution of Kubernetes ({', '.join(now.others)}): "
            "uninstall that, and remove what it has left there"
        )
    elif CLEAN not in past.owed and now.entry.leftovers:  # a kubelet without a cluster may have them too
        whose = "a membership that is over" if now.entry.record else "a join that bcd did not make"
        raise Refused(
            f"{UNIT}: {', '.join(now.entry.leftovers)} {'is' if len(now.entry.leftovers) == 1 else 'are'} left of "
            f"{whose}: kubeadm reset by hand, if nothing there is needed"
        )
    from .kube_kernel import refuse_rivals

    refuse_rivals(past)
    return name


def _refuse_stranger(want: Settings, joined: Joined, name: str) -> None:
    """A member is ours to keep by the key of its cluster's CA: server addresses differ for one cluster."""
    if want.pin not in joined.pins:
        has = " and ".join(f"sha256:{pin}" for pin in joined.pins) or "none"
        raise Refused(
            f"{UNIT}: this machine is a member of another cluster ({KUBELET_CONF} names {joined.server}, whose CA has "
            f"{has}, and caCertSha256 is sha256:{want.pin}): correct it, or, to move the machine, {RESET}"
        )
    if joined.node and joined.node != name:
        raise Refused(
            f"{UNIT}: this machine has joined as the Node {joined.node}, and its host name now makes it {name}: give "
            f"it its host name back (hostnamectl set-hostname), or {RESET}"
        )


def _forget_token(todo: Todo, paths: tuple[str, ...]) -> None:
    """First of all, whatever else comes to nothing."""
    if paths:
        from .kube_entry import forget_token

        with todo.lane("token"):
            todo.add(*map(forget_token, paths))


# -- a worker


def plan(want: Settings, now: Now, past: Past) -> Plan:
    """Packages, kernel, swap, containerd; then the join, or all that keeps a member one."""
    name = _refuse(want, now, past)
    todo = Todo()
    _forget_token(todo, now.token_files)
    if now.joined is None:
        if _stands(todo, want, now, past):
            from .kube_join import plan as join

            join(todo, want, name, now.entry, past)
    else:
        for part, planner in _parts(want, now, past).items():
            with todo.lane(part):
                planner(todo)
        _member(todo, want, now, past)
    return todo.plan()


def _parts(want: Settings, now: Now, past: Past) -> dict[str, Callable[[Todo], Any]]:
    """What a worker stands on, in this order."""
    from . import kube_kernel, kube_packages, swap

    return {
        "packages": lambda todo: kube_packages.plan(todo, want, now.parts.software, past),
        "kernel": lambda todo: kube_kernel.plan(todo, now.parts.kernel, past),
        "swap": lambda todo: swap.plan(todo, now.parts.swap, now.swap_allowed, past),
        "containerd": lambda todo: _containerd(todo, now.parts, past, now.cgroupfs),
    }


def _containerd(todo: Todo, parts: Parts, past: Past, cgroupfs: bool) -> None:
    """One that has to be installed first is looked at then."""
    if not parts.software.has_containerd:
        from .kube_install import RUNTIME

        raise NotKnownYet(RUNTIME)
    from .containerd_kube import plan as configure

    configure(todo, parts.containerd, past, cgroupfs)


def _stands(todo: Todo, want: Settings, now: Now, past: Past) -> bool:
    """Plan what the join stands on, without lanes: where one of it fails, is held back or waits, nothing is joined.

    What is only not known yet, in check mode, ends itself alone.
    """
    for part, planner in _parts(want, now, past).items():
        apart = Todo()
        with apart.lane(part):
            planner(apart)
        found = apart.plan()
        todo.add(*(step if step.kind == "later" else step._replace(lane="") for step in found.steps))
        for wait in found.pending:
            todo.wait(wait.reason, wait.message)
        for condition in found.conditions:
            todo.condition(condition.type, condition.reason, condition.message)
        todo.note(*found.notes)
        if found.pending or any(step.kind == "fail" for step in found.steps):
            return False
    return True


def _member(todo: Todo, want: Settings, now: Now, past: Past) -> None:
    """Record a join of ours once the Node is seen; what keeps a member one comes after that."""
    from .kube_kept import plan as keep

    if CLEAN in past.owed and now.kept.record is None:
        from .kube_joined import settle

        if settle(todo, want, now.kept, past):
            return
    keep(todo, want, now.kept, past)


# -- handed back


def absent(now: Going, past: Past) -> Plan:
    """The membership first; then what was there for it."""
    todo = Todo()
    _forget_token(todo, now.token_files)
    from . import containerd_kube, kube_clean, kube_kernel, kube_packages, swap

    if not kube_clean.plan(todo, now.leaving, past):
        return todo.plan()
    parts: dict[str, Callable[[], Any]] = {
        "packages": lambda: kube_packages.absent(todo, now.parts.software, past),
        "containerd": lambda: containerd_kube.absent(todo, now.parts.containerd, past),
        "kernel": lambda: kube_kernel.absent(todo, now.parts.kernel, past),
        "swap": lambda: swap.restore(todo, now.parts.swap, past),
    }
    if kube_clean.is_anothers(now.leaving, past):  # a live kubelet dies of swap, and of another cgroup driver
        parts = {"packages": parts["packages"]}
    for part, planner in parts.items():
        with todo.lane(part):
            _alone(planner)
    return todo.plan()


def _alone(planner: Callable[[], Any]) -> None:
    """What one part refuses keeps nothing else of the machine from being handed back."""
    try:
        planner()
    except Refused as fault:
        raise StepFailed(fault.message, retryable=False) from None
