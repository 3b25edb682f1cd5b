# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine that is no member of a cluster shows of joins, and what is left of one that came to nothing.

kubeadm cleans up nothing: a join that failed behind its first checks leaves files that keep the next one from starting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.plan import Todo
from ..core.step import Effect, Step, fail, run
from .kube_seen import BOOTSTRAP, CLEAN, JOIN_FILE, KUBELET_FLAGS, SERVICE
from .service_seen import Service
from .systemd import control

CA = "/etc/kubernetes/pki/ca.crt"
LEFTOVERS = (
    BOOTSTRAP,  # kubeadm starts no join while this one, or the next one, is there
    CA,
    "/var/lib/kubelet/config.yaml",
    KUBELET_FLAGS,
    "/var/lib/kubelet/instance-config.yaml",
)
KUBELET_PKI = "/var/lib/kubelet/pki"
CLIENT = "kubelet-client"  # how the names of the kubelet's client certificates and keys begin there
# What other distributions of Kubernetes have their kubelet's state or credentials in.
OTHERS = (
    "/var/lib/rancher/k3s/agent",
    "/var/lib/rancher/rke2/agent",
    "/var/lib/k0s/pki",
    "/var/snap/microk8s/current/credentials",
    "/var/lib/kubelet/kubeconfig",
)


class Entry(NamedTuple):
    """A machine that is no member. `leftovers` are files of a join that came to nothing, ours or another's.

    `record`: whether our record of a membership is there, which is over; `running`: whether a join that a killed pass
    began still runs; `said` is what the kubelet's log ends with, after a join that came to nothing in this run; `gpus`
    is what labels tell of this machine's GPUs (kube_labels.Gpus), None where they do not answer.
    """

    leftovers: tuple[str, ...] = ()
    kubelet: Service = Service()
    record: bool = False
    running: bool = False
    said: str = ""
    gpus: Any = None


def clean(todo: Todo, leftovers: tuple[str, ...], kubelet: Service, same_pass: bool = False) -> None:
    """Plan that nothing of a join of ours that came to nothing is left: the kubelet stops, and its files go.

    `same_pass`: it was made in this pass, which has then changed nothing.
    A reset by kubeadm would do more: it takes away all that runs in the container runtime, whoever started it. Behind
    the stop the runner looks again: a kubelet that has become a member in between keeps its files. What follows the
    removal stands on a look too: the same files may come and go once more.
    """
    if leftovers and (kubelet.runs or kubelet.active == "activating"):
        stop = control(
            "stop",
            SERVICE,
            f"stop {SERVICE}, whose join came to nothing",
            disruption="none",  # without a cluster it has no pods
            barrier=True,
            owes=(CLEAN,),
        )
        todo.add(stop._replace(retry=same_pass))
    paths = (*leftovers, JOIN_FILE)
    todo.add(
        run(
            ("rm", "-f", "--", *paths),
            f"remove what the join left ({', '.join(paths)})",
            timeout=60.0,
            retry=same_pass,
            barrier=not same_pass,
            pays=(CLEAN,),
            effects=tuple(Effect("gone", path) for path in paths),
        )
    )


def forget_token(path: str) -> Step:
    """Remove a file with the token of a killed join, by a program: what a step removes itself is in the diff."""
    return run(
        ("rm", "-f", "--", path),
        f"remove {path}, which has the token of a join that was killed",
        timeout=60.0,
        effects=(Effect("gone", path),),
    )


def masked() -> Step:
    """A kubelet that nobody can start: a join of it would take minutes to come to nothing."""
    why = f"{SERVICE} is masked, which keeps it from being started: run systemctl unmask {SERVICE}"
    return fail(f"start {SERVICE}", why)
