# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine in memory that has joined the stand-in cluster, and the part of k8s-join that keeps or takes back a member.

What a worker stands on (packages, kernel, swap, containerd) has tests of its own and is left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_clean import leaving
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_join import joined
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_kept import kept
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import (
    kube_clean,
    kube_kept,
    kube_membership,
    kube_membership_write,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.k8s_join_settings import FIELDS, check
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    RECORD,
    Membership,
    Settings,
    Taint,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import K8S_JOIN
from tests.cluster.control_plane import Cluster
from tests.gpu.model import Machine
from tests.unit.kube_host import KubeHost


def _look(host: Host, settings: Settings | None, past: Past) -> Any:
    if settings is None:
        return leaving(host, past)
    member = joined(host)
    assert member is not None, "this machine is no member"
    return kept(host, member, settings)


def _plan(settings: Settings, now: Any, past: Past) -> Plan:
    todo = Todo()
    kube_kept.plan(todo, settings, now, past)
    return todo.plan()


def _absent(now: Any, past: Past) -> Plan:
    todo = Todo()
    kube_clean.plan(todo, now, past)
    return todo.plan()


MEMBER = Unit(K8S_JOIN, FIELDS, check, _look, _plan, _absent)


def member(
    cluster: Cluster,
    *,
    ours: bool = True,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    machine: Machine | None = None,
) -> KubeHost:
    """A machine that has joined with these labels and taints, us (as our record says) or somebody else."""
    with cluster.lock:
        cluster.nodes.clear()
        cluster.pods.clear()
    host = KubeHost(cluster, machine=machine)
    given = [{"name": "node-labels", "value": ",".join(f"{key}={value}" for key, value in (labels or {}).items())}]
    said = host.join_by_hand(
        kubeletExtraArgs=given if labels else [], taints=[dict(taint._asdict()) for taint in taints]
    )
    assert said.rc == 0, said.err
    host.programs["systemctl"](host, ("systemctl", "enable", "kubelet.service"))
    if ours:
        record = Membership(cluster.url, cluster.pin, "gpu-01", dict(labels or {}), tuple(sorted(taints)))
        host.put(RECORD, kube_membership_write.render(record))
    return host


def record(host: KubeHost) -> Membership:
    """What our record says."""
    return kube_membership.parse(host.text(RECORD) or "")


def verbs(host: KubeHost) -> list[str]:
    """What kubectl and kubeadm were run for, in order."""
    words = [[word for word in argv[1:] if not word.startswith("-") and "/" not in word] for argv in host.typed]
    return [f"{argv[0]} {rest[0]}" for argv, rest in zip(host.typed, words)]
