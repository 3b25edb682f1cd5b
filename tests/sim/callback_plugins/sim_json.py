# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what happened as one JSON document, for tests: "tasks" (host, task, action, status, result) and "stats"."""

from __future__ import annotations

DOCUMENTATION = """
name: sim_json
type: stdout
short_description: results as JSON
description:
  - One document at the end of the run, for the tests of this collection.
author: bettercompute
"""

import json
import typing as t

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """Collects every result."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "sim_json"

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[dict[str, t.Any]] = []

    def _keep(self, result: t.Any, status: str) -> None:
        host = getattr(result, "host", None) or result._host
        task = getattr(result, "task", None) or result._task
        values = getattr(result, "result", None) or result._result
        self.tasks.append(
            {
                "host": host.get_name(),
                "task": task.get_name(),
                "action": task.action,
                "status": status,
                "result": json.loads(self._dump_results(values, indent=0)),
            }
        )

    def v2_runner_on_ok(self, result: t.Any) -> None:
        """Done."""
        self._keep(result, "ok")

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        """Failed."""
        self._keep(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_skipped(self, result: t.Any) -> None:
        """Skipped."""
        self._keep(result, "skipped")

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        """Not reached."""
        self._keep(result, "unreachable")

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        """The end: print."""
        hosts = {host: stats.summarize(host) for host in sorted(stats.processed)}
        custom = dict(stats.custom.items())
        print(json.dumps({"tasks": self.tasks, "stats": hosts, "custom": custom}, default=str))
