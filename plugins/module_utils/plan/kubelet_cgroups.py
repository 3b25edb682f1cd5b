# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member whose kubelet does not take its cgroups from systemd: no pod starts where containerd does otherwise."""

from __future__ import annotations

import re

from ..core.step import Step, fail
from .kube_seen import KUBELET_CONFIG
from .unit_names import K8S_JOIN as UNIT


def takes_cgroupfs(config: str) -> bool:
    """Whether a kubelet's configuration (YAML, as kubeadm writes it) has it use cgroupfs."""
    return re.search(r"""^cgroupDriver:[ ]+["']?cgroupfs\b""", config, re.MULTILINE) is not None


def left() -> Step:
    """The step that fails in place of those that would change containerd under its pods.

    A containerd of 1.x does not tell the kubelet its driver, and to change either with pods on the node is not safe:
    https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/configure-cgroup-driver/
    """
    message = (
        f"{UNIT}: the kubelet of this node takes its cgroups from cgroupfs ({KUBELET_CONFIG}), and containerd is left "
        "as it is, since no pod starts where that takes them from systemd: drain the node, set cgroupDriver to systemd "
        "in that file and in the cluster's ConfigMap kubelet-config, restart the kubelet, and run again"
    )
    return fail("configure containerd", message, retryable=False)
