# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that is no member yet: what a join stands on, and then the join."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.plan import Past, Todo
from .kube_seen import Settings

Parts = Mapping[str, Callable[[Todo], Any]]


def plan(todo: Todo, want: Settings, parts: Parts, name: str, entry: Any, past: Past) -> None:
    """`parts` plan what a worker stands on, in their order; `name` is the Node's, `entry` what is here of joins."""
    if _stands(todo, parts):
        from .kube_join import plan as join

        join(todo, want, name, entry, past)


def _stands(todo: Todo, parts: Parts) -> bool:
    """Plan what the join stands on, without lanes: where one of it fails, is held back or waits, nothing is joined.

    What is only not known yet, in check mode, ends itself alone.
    """
    for part, planner in parts.items():
        apart = Todo()
        with apart.lane(part):
            planner(apart)
        found = apart.plan()
        todo.add(*(step if step.kind == "later" else step._replace(lane="") for step in found.steps))
        for wait in found.pending:
            todo.wait(wait.reason, wait.message)
        for condition in found.conditions:
            todo.condition(condition.type, condition.reason, condition.message)
        todo.note(*found.notes)
        if found.pending or any(step.kind == "fail" for step in found.steps):
            return False
    return True
