# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubectl with the kubelet's own credentials: what a node may do to its own Node and no more."""

from __future__ import annotations

from .kube_seen import KUBELET_CONF

TIMEOUT = 60.0  # seconds, where nothing is waited for
# Nothing of root's own kubectl counts: no kubeconfig, no preferences, and no cache, neither read nor left behind.
KUBECTL = (
    *("env", "HOME=/proc/none", "KUBECONFIG=", "KUBERC=off"),
    *("kubectl", "--kubeconfig", KUBELET_CONF, "--request-timeout=30s"),
)


def kubectl(*arguments: str) -> tuple[str, ...]:
    """The command line."""
    return (*KUBECTL, *arguments)
