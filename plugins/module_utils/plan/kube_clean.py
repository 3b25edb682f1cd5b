# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handing a machine back: its pods go, then its membership, and only a join of our own is taken back.

kubeadm reset removes every pod of the container runtime and empties the kubelet's folder, so what it must not take
along is looked for before. It is told to leave etcd alone: without a control plane here, an etcd is somebody else's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import NotReady, Refused, StepFailed
from ..core.plan import Past, Todo
from ..core.step import Effect, fail, known_after, remove, run
from . import kube_pods
from .debts import debt
from .holds import Hold, claim
from .kube_entry import LEFTOVERS, clean
from .kube_kept import UNCORDON
from .kube_node import render
from .kube_seen import CLEAN, CONTROL_PLANE, KUBELET_CONF, RECORD, SERVICE, SOCKET, Joined, Membership, Node
from .node_answer import address
from .service_seen import Service
from .systemd import control
from .unit_names import K8S_JOIN as UNIT

RESET = debt("reset", "kubeadm")
DRAIN = "drain the node"  # what may come to nothing
PODS = "pods"  # the lane
GRACE = 300  # seconds for pods to end
FOLDER = "/var/lib/kubelet"
MOUNTS = "/proc/self/mountinfo"
FILES = (KUBELET_CONF, *LEFTOVERS)  # what makes a membership; a reset takes all of it
ENABLED = ("enabled", "enabled-runtime")
ARGV = ("kubeadm", "reset", "--force", "--cri-socket", SOCKET, "--skip-phases=remove-etcd-member")
# Pods of a DaemonSet have this label. They are left out by it: kubectl would ask for their DaemonSet, which no node may
# see, and then evict nothing at all.
OTHERS = "--pod-selector=!pod-template-generation"
STAYS = (
    "what the network plugin left (/etc/cni/net.d, links, packet filter rules), container images and the packages stay "
    "as they are: other programs may use them"
)


class Leaving(NamedTuple):
    """What a machine shows that is to be handed back.

    `node` and `pods`, the names of pods that an eviction takes away, raise NotReady where the API server does not tell
    of them; `mounts` are those below the kubelet's folder that hold data, `files` what is there of a membership, or of
    a join that came to nothing; `users` is who has GPUs among the pods, a clause, "" for nobody. `name` is the Node's.
    `is_joining`: the kubeadm join of a pass that was killed still runs.
    """

    joined: Joined | None = None
    record: Membership | None = None
    kubelet: Service = Service()
    name: str = ""
    files: tuple[str, ...] = ()
    is_control_plane: bool = False
    is_joining: bool = False
    node: Node | None = None
    pods: tuple[str, ...] = ()
    holds: tuple[Hold, ...] = ()
    users: str = ""
    mounts: tuple[str, ...] = ()
    has_kubeadm: bool = True


def is_ours(now: Leaving, past: Past) -> bool:
    """Whether it was us who joined this machine: our record says so, or a join of ours that no record names yet."""
    return now.record is not None or CLEAN in past.owed


def is_anothers(now: Leaving, past: Past) -> bool:
    """Whether it is a member that somebody else joined: its kubelet goes on, and on what it stands with it."""
    return now.joined is not None and not is_ours(now, past)


def plan(todo: Todo, now: Leaving, past: Past) -> bool:
    """Plan what takes a join of ours back; whether what else we set up here may go in the same plan.

    Raises Refused, before anything is written, for what is never reset.
    """
    if not is_ours(now, past):
        _leave(todo, now, past)
        return True
    if now.record is None and now.joined is None:
        return _undo_join(todo, now)
    is_due = now.joined is not None or bool(now.files) or RESET in past.owed
    if is_due:
        _refuse(now, past)
        if _is_busy(todo, now):
            return False
        left = _empty(todo, now, past)
        if left is None or not _reset(todo, now, left):
            return False
    _rest(todo, now.kubelet, is_due)
    if now.record is not None:
        todo.add(remove(RECORD, f"remove {RECORD}: this machine is the node {now.record.node} no more"))
    _note_what_stays(todo, now.name)
    return True


def _leave(todo: Todo, now: Leaving, past: Past) -> None:
    """Nothing to take back: another's membership stays as it is, and so does a kubelet that runs."""
    if now.joined is not None:
        todo.note(
            f"this machine is a member of {now.joined.server} and was not joined by us, so it is not reset, and the "
            "kernel's parameters, swap and containerd stay as its kubelet needs them: kubeadm reset by hand takes it "
            "out, and after that state: absent takes these back"
        )
    elif UNIT in past.applied:
        if not now.kubelet.runs and not now.files:
            _rest(todo, now.kubelet, is_reset=False)
        _note_what_stays(todo, f"{now.name}, or by the name that this machine had when it joined")


def _undo_join(todo: Todo, now: Leaving) -> bool:
    """A join of ours that came to nothing: what it left goes, and nothing else of this machine."""
    if now.is_joining:
        todo.wait("NotReady", "the kubeadm join of a pass that was killed still runs: wait for its end and run again")
        return False
    _rest(todo, now.kubelet, is_reset=bool(now.files))  # which else the cleaning stops
    clean(todo, now.files, now.kubelet)
    return True


def _note_what_stays(todo: Todo, name: str) -> None:
    todo.note(
        f"a cluster keeps the Node object of a machine that had joined it, which no node may delete: an admin of the "
        f"cluster runs kubectl delete node {name}",
        STAYS,
    )


# -- what is in the way


def _refuse(now: Leaving, past: Past) -> None:
    if now.is_control_plane:
        raise Refused(
            f"{UNIT}: {CONTROL_PLANE} is there, so this machine runs a control plane, which is never reset: take it "
            "out of its cluster by hand (kubeadm reset)"
        )
    api_server, ours = _cluster(now, past)
    if now.joined is not None and ours not in now.joined.pins:
        pins = ", ".join(f"sha256:{pin}" for pin in now.joined.pins) or "none"
        raise Refused(
            f"{UNIT}: {KUBELET_CONF} is of a cluster at {now.joined.server} with the CA pin {pins}, and the one that "
            f"we joined, {api_server}, has sha256:{ours}: this membership is not ours to take back, reset it by hand "
            "(kubeadm reset)"
        )


def _cluster(now: Leaving, past: Past) -> tuple[str, str]:
    """The API server and the pin of the cluster that we joined; of a join without a record the one that was wanted."""
    if now.record is not None:
        return now.record.api_server, now.record.pin
    wanted = past.applied.get(UNIT, {})
    return str(wanted.get("apiServer", "unknown")), str(wanted.get("caCertSha256", "unknown")).lower()[-64:]


def _is_busy(todo: Todo, now: Leaving) -> bool:
    """Whether allocations or pods have GPUs of this machine: they are not taken away from under them."""
    claims = [claim(hold) for hold in now.holds]
    if now.users:
        claims.append(now.users)
    if claims:
        more = f" and {len(claims) - 3} more" if len(claims) > 3 else ""
        todo.wait(
            "Busy",
            f"{'; '.join(claims[:3])}{more}: this machine leaves its cluster once its devices are released: release "
            "the allocations, or delete the pods, and run again",
        )
    return bool(claims)


def _empty(todo: Todo, now: Leaving, past: Past) -> str | None:
    """Evict the pods as far as that can be done: what is known to stay of them, a clause, "" for nothing.

    None: whether the machine may then be reset is known only later.
    """
    left = "" if now.joined is None else _drain(todo, now, now.joined, past)
    if not now.mounts:
        return left or ""
    if left is None:
        todo.add(known_after("kubeadm reset", f"the pods of the node {now.name} are evicted"))
        return None
    raise Refused(
        f"{UNIT}: {', '.join(now.mounts)} {'is' if len(now.mounts) == 1 else 'are'} still mounted, and a reset could "
        "delete what is in there: delete the pods that use it, or unmount it, and run again"
    )


def _drain(todo: Todo, now: Leaving, joined: Joined, past: Past) -> str | None:
    """Cordon the Node and evict its pods, which a kubelet may do; what stays where that was, or cannot be, done."""
    why = _unknown(now.node)
    if why:
        return f"its pods could not be evicted: {why}"
    if now.node is None:
        return ""
    unknown = _unknown(now.pods)
    pods = () if unknown else now.pods
    if now.node.unschedulable and not pods and not unknown:
        return ""
    if DRAIN in past.vain:
        said = past.tried.get(DRAIN) or "see their disruption budgets"
        if unknown:
            return f"its pods are not known: {unknown}"
        if not pods:
            return "" if now.node.unschedulable else f"it could not be cordoned: {said}"
        return f"{', '.join(pods)} could not be evicted: {said}"
    _evict(todo, now, now.node, joined, past)
    return None


def _evict(todo: Todo, now: Leaving, seen: Node, joined: Joined, past: Past) -> None:
    from .kubectl import kubectl

    node = seen.name
    gone: list[Effect] = [
        Effect("answers", f"GET {address(joined.server, node)}", render(seen._replace(unschedulable=True))),
        Effect("answers", f"GET {kube_pods.address(joined.server, node)}", '{"items": []}'),
    ]
    if now.mounts:
        gone.append(Effect("unknown", MOUNTS, f"the pods of the node {node} are evicted"))
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", OTHERS, f"--timeout={GRACE}s")
    step = run(
        kubectl("drain", node, *options),
        f"let no more pods come to the node {node}, and evict those that are there (drain)",
        ok=(0, 1),  # what kubectl ends with where pods stay, and where they go: it may not look whether they have gone
        timeout=GRACE + 60.0,
        disruption="service",
        tries=DRAIN,
        barrier=True,
        settle=1.0,
        owes=() if seen.unschedulable else (UNCORDON,),
        effects=tuple(gone),
    )
    with todo.lane(PODS):  # of its own: an eviction that comes to nothing ends it, and the reset goes on
        todo.add(step._replace(retry=DRAIN in past.tried))


def _unknown(value: Any) -> str:
    """Why a value of a look is not there; "" where it is. What is known only later is not asked for here."""
    try:
        repr(value)
    except (NotReady, StepFailed) as fault:
        return fault.message
    return ""


# -- the steps


def _reset(todo: Todo, now: Leaving, left: str) -> bool:
    """The reset, whose word is not taken for it: the record stays until a look shows that the membership is gone.

    `left` is what it is made in spite of; the step says so, since notes are of the end of a pass.
    """
    if not now.has_kubeadm:
        todo.add(
            fail(
                "reset this machine",
                "kubeadm is not installed, which takes this machine out of its cluster: install it again and run again",
            )
        )
        return False
    stopped = control("stop", SERVICE).effects
    todo.add(
        run(
            ARGV,
            f"take this machine out of its cluster{f' {now.record.api_server}' if now.record else ''} (kubeadm reset)"
            f"{f', though {left}' if left else ''}",
            disruption="service",
            barrier=True,
            owes=(RESET, CLEAN),  # the unit may be wanted again before it is made to its end
            pays=(RESET, UNCORDON, CLEAN),
            effects=(*(Effect("gone", path) for path in dict.fromkeys((*FILES, *now.files))), *stopped),
        )
    )
    return True


def _rest(todo: Todo, kubelet: Service, is_reset: bool) -> None:
    """A kubelet of no cluster neither runs nor starts at boot; the reset stops it, and leaves it enabled."""
    if kubelet.enabled in ENABLED:
        todo.add(control("disable", SERVICE))
    if not is_reset and (kubelet.runs or kubelet.active == "activating"):
        todo.add(control("stop", SERVICE))
