# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This machine's Node as a reboot has to know it: whether pods may come, whether that is our doing, which there are."""

from __future__ import annotations

from ..core.errors import NotReady, StepFailed
from ..core.host import Host
from ..core.unknown import later
from ..plan import kube_pods
from ..plan.kube_cordon import DRAINED, RECORD, Now, Ours, Settings, parse_record
from ..plan.kube_node import TIMEOUT
from ..plan.kube_seen import Joined, Node


def look(host: Host, settings: Settings | None) -> Now:
    """All of it; raises NotReady where the API server does not tell of the Node."""
    from .kube_join import joined

    member = joined(host)
    if member is None:
        return Now(record=record(host))
    found = own_node(host, member)
    wants_pods = found is not None and settings is not None and settings.state == DRAINED
    return Now(member, found, record(host), later(pods, host, member) if wants_pods else ())


def record(host: Host) -> Ours | None:
    """Which Node we cordoned; raises StepFailed for a record that is damaged."""
    text = host.read(RECORD)
    return None if text is None else parse_record(text)


def own_node(host: Host, member: Joined) -> Node | None:
    """The Node, None where the cluster has none; raises NotReady where the kubelet's credentials cannot ask for it."""
    from ..plan.kube_kept import is_dead
    from .kube_join import node

    if is_dead(member, host.time()):
        where = member.certificate or "in kubelet.conf"
        raise NotReady(
            f"the kubelet's client certificate ({where}) is over or not there, so that its cluster does not know this "
            "machine: see journalctl -u kubelet"
        )
    return node(host, member)


def pods(host: Host, member: Joined) -> tuple[str, ...]:
    """The pods that an eviction takes away; raises StepFailed where the API server does not tell."""
    url = kube_pods.address(member.server, member.node)
    answer = host.get(url, TIMEOUT, member.ca, member.certificate)
    if answer.rc != 200:
        raise StepFailed(f"{url} answers with {answer.rc} {answer.err}: see what the API server says of it")
    try:
        return kube_pods.evictable(answer.out)
    except ValueError as fault:
        raise StepFailed(f"{url} gives no list of pods ({fault}): see what answers there") from None
