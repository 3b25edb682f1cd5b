# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This machine's Node and the pods on it, as the API server tells its kubelet."""

from __future__ import annotations

from ..core.errors import NotReady, StepFailed
from ..core.host import Host
from ..plan import kube_pods
from ..plan.kube_seen import Joined, Node
from ..plan.node_answer import TIMEOUT


def own_node(host: Host, joined: Joined) -> Node | None:
    """The Node, None where the cluster has none; raises NotReady where the kubelet's credentials cannot ask for it."""
    from .kube_join import days_left, node

    if days_left(host, joined, 0) < 0:
        where = joined.certificate or "in kubelet.conf"
        raise NotReady(
            f"the kubelet's client certificate ({where}) is over or not there, so that its cluster does not know this "
            "machine: see journalctl -u kubelet"
        )
    return node(host, joined)


def pods(host: Host, joined: Joined) -> tuple[str, ...]:
    """The pods that an eviction takes away; raises StepFailed where the API server does not tell."""
    url = kube_pods.address(joined.server, joined.node)
    answer = host.get(url, TIMEOUT, joined.ca, joined.certificate)
    if answer.rc != 200:
        raise StepFailed(f"{url} answers with {answer.rc} {answer.err}: see what the API server says of it")
    try:
        return kube_pods.evictable(answer.out)
    except ValueError as fault:
        raise StepFailed(f"{url} gives no list of pods ({fault}): see what answers there") from None
