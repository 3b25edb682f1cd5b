# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes of the unit k8s-join over a worker in memory and its stand-in cluster."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given, Secret
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.control_plane import TOKEN
from tests.unit.kube_host import KubeHost
from tests.unit.promises import go

Settings = dict[str, Any]
NODE = "gpu-01"
REFERENCE = "join-token"
JOIN = ("kubeadm", "join")


def given(token: str = TOKEN) -> Given:
    """What a run is given that has the token."""
    return Given({REFERENCE: Secret(token)} if token else {}, node_id="node-7", site="fra")


def passed(
    host: KubeHost, token: str = TOKEN, *, check: bool = False, max_disruption: str = "gpu", **more: Any
) -> Outcome:
    """A pass with the settings of the machine's cluster, and `more` of them."""
    settings = host.settings(**more)
    return go(UNIT, host, settings, check=check, max_disruption=max_disruption, given=given(token))


def actions(outcome: Outcome) -> list[str]:
    """The sentences of the steps."""
    return [line.action for line in outcome.steps]


def message(outcome: Outcome) -> str:
    """The failure's."""
    assert outcome.failure is not None, outcome
    return outcome.failure.message


def waits(outcome: Outcome) -> list[str]:
    """What the unit waits for."""
    return [f"{wait.reason}: {wait.message}" for wait in outcome.pending]


def joins(host: KubeHost) -> int:
    """How often kubeadm was told to join."""
    return sum(argv[:2] == JOIN for argv in host.typed)


def shows(host: KubeHost) -> object:
    """What a worker shows in the end, but for times and for which Node of its name it is."""
    files = {
        path: re.sub(r'"uid": "[^"]+"', '"uid": "one"', file.text)
        for path, file in host.files.items()
        if path.startswith(
            ("/etc", "/proc/sys/net", "/proc/swaps", "/var/lib/kubelet/c", "/var/lib/bcd-hostconfig/k8s")
        )
        and not path.endswith(".pem")
    }
    node = host.cluster.nodes.get(NODE)
    registered = (host.cluster.labels(NODE), host.cluster.taints(NODE)) if node else None
    return files, dict(host.links), registered, host.kubelet, sorted(host.running)
