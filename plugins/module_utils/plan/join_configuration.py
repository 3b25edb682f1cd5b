# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JoinConfiguration by which kubeadm joins a worker, in the form that its version takes.

v1beta4 came with kubeadm 1.31, and v1beta3 with 1.22. Every text stands in quotes as JSON has them, which YAML reads
alike, so that no value ends early.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Union

from ..core.secret import SLOT
from .kube_seen import SOCKET, Settings

OLDEST = 22
V1BETA4 = 31
VALIDATES = 28  # kubeadm's first minor that has `kubeadm config validate`
# kubeadm's own patience is minutes for each; a token that is not known costs all of the first.
TIMEOUTS = {"discovery": "30s", "kubernetesAPICall": "30s", "kubeletHealthCheck": "2m0s", "tlsBootstrap": "2m0s"}

Tree = Union[str, Mapping[str, Any], list[Any]]


def render(want: Settings, node: str, labels: Mapping[str, str], minor: int, token: str = SLOT) -> str:
    """The configuration in YAML for kubeadm 1.`minor`, with the token, or what stands in its place."""
    is_new = minor >= V1BETA4
    bootstrap = {"apiServerEndpoint": want.endpoint, "caCertHashes": [f"sha256:{want.pin}"], "token": token}
    discovery: dict[str, Tree] = {"bootstrapToken": bootstrap}
    registration: dict[str, Tree] = {"criSocket": SOCKET, "name": node}
    if labels:
        words = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        registration["kubeletExtraArgs"] = (
            [{"name": "node-labels", "value": words}] if is_new else {"node-labels": words}
        )
    if want.taints:
        registration["taints"] = [
            {key: value for key, value in taint._asdict().items() if value} for taint in want.taints
        ]
    found: dict[str, Tree] = {
        "apiVersion": f"kubeadm.k8s.io/{'v1beta4' if is_new else 'v1beta3'}",
        "kind": "JoinConfiguration",
        "discovery": discovery,
        "nodeRegistration": registration,
    }
    if is_new:
        found["timeouts"] = TIMEOUTS
    else:
        discovery["timeout"] = TIMEOUTS["discovery"]
    return "\n".join(_lines(found)) + "\n"


def _lines(tree: Mapping[str, Any]) -> list[str]:
    """Block YAML: mappings by indentation, lists with their elements in the form of JSON."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            lines += [f"{key}:", *(f"  {line}" for line in _lines(value))]
        elif isinstance(value, list):
            lines += [f"{key}:", *(f"- {json.dumps(one)}" for one in value)]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return lines
