# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which machines and settings k8s-join refuses before anything is written."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.plan import Past
from .allowed_clusters import refuse_others
from .k8s_join import Now
from .kube_seen import CLEAN, CONTROL_PLANE, KUBELET_CONF, Joined, Settings
from .node_name import node_name
from .unit_names import K8S_JOIN as UNIT

RESET = "hand it back by hand (kubeadm reset) first"


def refuse(want: Settings, now: Now, past: Past) -> None:
    """Raise Refused for a machine or settings that no pass may go on with."""
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
