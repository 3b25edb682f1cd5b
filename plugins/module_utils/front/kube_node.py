# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This machine's Node, cordoned and let go, for the module kube_node and the playbook reboot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import host as machine
from ..core.errors import Fault, StepFailed
from ..core.runner import Goal, converge
from .opening import opened
from .result import failed, render

NEEDS_ROOT = "kube-node: only root has the kubelet's credentials: set become: true for this task"


def run_node(argument_spec: dict[str, Any]) -> None:
    """Bring the Node to what the module's options say, and exit."""
    from .module import leave, start

    module = start(argument_spec)
    leave(module, node_result(module.params, module.check_mode))


def node_result(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """The module's result; never goes through the helper, which has no word for it."""
    from ..plan.kube_cordon import NAME
    from ..units.kube_node import UNIT

    settings = {"state": params["state"], "timeout": params["timeout"]}
    try:
        if not check_mode and machine.Host().uid() != 0:
            raise StepFailed(NEEDS_ROOT, retryable=False)
        with opened(check_mode, NAME, outside=True) as (host, records):
            outcome = converge(Goal(UNIT, settings), host, records)
    except Fault as fault:
        outcome = failed(NAME, fault)
    return {"node": None, "cordoned_by": None, **render(outcome)}
