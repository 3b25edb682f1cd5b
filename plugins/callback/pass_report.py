# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The callback pass_report."""

from __future__ import annotations

DOCUMENTATION = r"""
name: pass_report
type: aggregate
short_description: One table at the end of what the run did to each host
version_added: 0.1.0
description:
  - Prints, after the recap, each host's state, the units that changed, what it waits for and what failed, the failing
    hosts first, and below it every reason in full, of a failure whether another run may help, and the units' conditions
    and notes. What many hosts say is told once, also where it differs in each host's own name alone.
  - Of a plan, and under C(--check), also every step that each host's units would take.
  - Reads the results of the collection's modules as they come in. A run without any prints nothing.
requirements:
  - Named in C(callbacks_enabled), as V(bettercompute.bcd.pass_report).
author:
  - bettercompute (@bettercompute)
"""

from collections.abc import Mapping
from typing import Any

from ansible.plugins.callback import CallbackBase

from ..plugin_utils.pass_table import Pass
from ..plugin_utils.report import fault_of

OURS = "bettercompute.bcd."
STATUS = "bcd_converge_status"  # the fact by which the role tells what a task with no_log came to


class CallbackModule(CallbackBase):
    """Collects the modules' results, and prints them at the end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "bettercompute.bcd.pass_report"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._pass = Pass()
        self._hidden: dict[str, bool] = {}  # by host, whether what no_log hides is a failure

    def v2_runner_on_ok(self, result: Any) -> None:
        """A module's result."""
        self._take(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """A module's result in a loop."""
        self._take(result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        """A module's result in a loop, failed."""
        self.v2_runner_on_failed(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A module's result, failed. A failure that came to no result is told as it is."""
        if "results" in result._result:  # a loop's: each of them has come by itself
            return
        if not self._take(result) and _is_ours(result):
            self._pass.fault(result._host.get_name(), fault_of(result._result) or "failed without a message")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host that could not be reached."""
        why = f"unreachable: {result._result.get('msg') or 'no reason given'}"
        self._pass.fault(result._host.get_name(), why, ours=_is_ours(result))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The end of the run."""
        for host in sorted(host for host, failed in self._hidden.items() if failed):
            self._pass.fault(host, "failed, and no_log hides why")
        lines = self._pass.lines()
        if lines:
            self._display.banner("PASS REPORT")
            for line in lines:
                self._display.display(line)

    def _take(self, result: Any) -> bool:
        """Whether the result is one of ours, or tells what one of ours came to that was hidden."""
        planned, host = bool(result._task.check_mode), result._host.get_name()
        told = (result._result.get("ansible_facts") or {}).get(STATUS)
        if _is_ours(result) and "censored" in result._result:
            self._hidden[host] = bool(result.is_failed())
            return True
        if host in self._hidden and isinstance(told, Mapping):
            del self._hidden[host]
            return self._pass.tell(host, told, planned)
        return _is_ours(result) and self._pass.add(host, result._result, planned)


def _is_ours(result: Any) -> bool:
    return str(getattr(result._task, "resolved_action", None) or result._task.action).startswith(OURS)
