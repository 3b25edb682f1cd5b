# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet registers its Node with, at each time that it makes one: the arguments that kubeadm wrote at the join.

A Node that an admin deleted comes back as the settings of that day had it, whatever has left them since. The labels
in kubernetes.io that a kubelet may set, such as topology.kubernetes.io/zone, it sets on a Node that is there too,
whenever it starts (kubelet, updateDefaultLabels).
"""

from __future__ import annotations

import re

from .kube_seen import Membership, Node

FLAG = r"""(?:^|[=\s"'])--{}=([^\s"']*)"""


def registered_again(record: Membership, flags: str, node: Node) -> Membership:
    """The record of a Node that was made anew: what it has of the kubelet's arguments is ours again."""
    labels, taints = _listed(flags, "node-labels"), _listed(flags, "register-with-taints")
    again = {key: value for key, value in node.labels.items() if f"{key}={value}" in labels}
    more = {(one.key, one.effect): one for one in node.taints if one.words in taints}
    ours = {**{(one.key, one.effect): one for one in record.taints}, **more}
    return record._replace(labels={**again, **record.labels}, taints=tuple(sorted(ours.values())))


def registers(flags: str, key: str, value: str) -> bool:
    """Whether the kubelet's arguments have the label."""
    return f"{key}={value}" in _listed(flags, "node-labels")


def _listed(flags: str, name: str) -> set[str]:
    """The elements of an argument of the kubelet's, as KUBELET_KUBEADM_ARGS has it."""
    return {one for found in re.findall(FLAG.format(name), flags) for one in found.split(",") if one}
