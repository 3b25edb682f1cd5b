# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that is handed back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import Refused, StepFailed
from ..core.plan import Past, Todo
from . import containerd_kube_back, kube_clean, kube_kernel_change, kube_packages_back, swap
from .k8s_join import Going


def hand_back(todo: Todo, now: Going, past: Past) -> None:
    """The membership first; then what was there for it."""
    if not kube_clean.plan(todo, now.leaving, past):
        return
    parts: dict[str, Callable[[], Any]] = {
        "packages": lambda: kube_packages_back.absent(todo, now.parts.software, past),
        "containerd": lambda: containerd_kube_back.absent(todo, now.parts.containerd, past),
        "kernel": lambda: kube_kernel_change.absent(todo, now.parts.kernel, past),
        "swap": lambda: swap.restore(todo, now.parts.swap, past),
    }
    if kube_clean.is_anothers(now.leaving, past):  # a live kubelet dies of swap, and of another cgroup driver
        parts = {"packages": parts["packages"]}
    for part, planner in parts.items():
        with todo.lane(part):
            _alone(planner)


def _alone(planner: Callable[[], Any]) -> None:
    """What one part refuses keeps nothing else of the machine from being handed back."""
    try:
        planner()
    except Refused as fault:
        raise StepFailed(fault.message, retryable=False) from None
