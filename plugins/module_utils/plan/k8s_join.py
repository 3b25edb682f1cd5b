# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k8s-join: the machine becomes a worker of a Kubernetes cluster, stays one, and is handed back."""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import NotKnownYet
from ..core.plan import Past, Plan, Todo
from .k8s_join_settings import FIELDS, check
from .kube_seen import CLEAN, Joined, Settings
from .node_name import node_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from ..core.named import NamedTuple

__all__ = ("FIELDS", "Going", "Now", "Parts", "Settings", "absent", "check", "plan")


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


# -- a worker


def plan(want: Settings, now: Now, past: Past) -> Plan:
    """Packages, kernel, swap, containerd; then the join, or all that keeps a member one."""
    if not _is_ours(want, now):
        from .k8s_join_refused import refuse

        refuse(want, now, past)
    from .kube_kernel import refuse_rivals

    refuse_rivals(past)
    todo = Todo()
    _forget_token(todo, now.token_files)
    parts = _parts(want, now, past)
    if now.joined is None:
        from .k8s_join_first import plan as join

        join(todo, want, parts, node_name(now.host_name), now.entry, past)
    else:
        for part, planner in parts.items():
            with todo.lane(part):
                planner(todo)
        _member(todo, want, now, past)
    return todo.plan()


def _is_ours(want: Settings, now: Now) -> bool:
    """Whether this is plainly a member of the one cluster that root allows."""
    joined = now.joined
    return (
        joined is not None
        and now.allowed == f"{want.api_server}#sha256:{want.pin}"
        and not now.control_plane
        and want.pin in joined.pins
        and joined.node in ("", node_name(now.host_name))
    )


def _forget_token(todo: Todo, paths: tuple[str, ...]) -> None:
    """First of all, whatever else comes to nothing."""
    if paths:
        from .kube_entry import forget_token as forget

        with todo.lane("token"):
            todo.add(*map(forget, paths))


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
    from .k8s_join_back import hand_back

    todo = Todo()
    _forget_token(todo, now.token_files)
    hand_back(todo, now, past)
    return todo.plan()
