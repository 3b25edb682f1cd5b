# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass of the swap part of k8s-join, run as root in the guest: driver.py on|off, with --check; prints JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_kernel import kernel
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.swap import swap
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_kernel as kernels
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_kernel_change as kernels_change
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import swap as swaps


def look(host: Host, settings: Any, _past: Past) -> tuple[Any, Any]:
    """Both snapshots."""
    return kernel(host), swap(host, settings is None)


def plan(_settings: Any, now: tuple[Any, Any], past: Past) -> Plan:
    """A worker's kernel, and no swap."""
    todo = Todo()
    kernels.plan(todo, now[0], past)
    swaps.plan(todo, now[1], False, past)
    return todo.plan()


def absent(now: tuple[Any, Any], past: Past) -> Plan:
    """Both given back."""
    todo = Todo()
    kernels_change.absent(todo, now[0], past)
    swaps.restore(todo, now[1], past)
    return todo.plan()


def main(words: list[str]) -> None:
    """Run the pass and print what came of it."""
    unit = Unit("k8s-join", (), dict, look, plan, absent)
    real = Host()
    host = PredictedHost(real) if "--check" in words else real
    outcome = converge(Goal(unit, {} if "off" in words else None), host, Records(host), "gpu")
    found = {
        "state": outcome.state,
        "changed": outcome.changed,
        "steps": [line.action for line in outcome.steps if not line.later],
        "later": [line.action for line in outcome.steps if line.later],
        "notes": outcome.notes,
        "says": [said.message for said in (*outcome.pending, outcome.failure) if said is not None],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
