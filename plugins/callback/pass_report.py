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
  - While the run goes on, on a terminal, keeps one line at its bottom, rewritten in place. It says how many hosts of
    all are done with the task, and which hosts run for longest, with their seconds. The line gives way to whatever
    Ansible prints, and goes at the end.
  - The units of a host are one task, of which nothing is told before its end. Where the role has one task a unit, by
    C(bcd_converge_mode=tasks), the unit that was done last stands beside the host.
  - A question of C(ssh) itself, such as whether to trust a host's key, is not Ansible's, so the line is drawn over it.
    Accept the keys before, or set O(progress=never).
options:
  progress:
    description:
      - V(auto) keeps the line where standard output is a terminal that a person looks at, so not in a job of AWX or of
        ansible-runner, which set E(AWX_ISOLATED_DATA_DIR), not where E(CI) is set, and not on a dumb terminal. Colours
        that are forced change nothing.
      - V(always) keeps it on any terminal. Where standard output is none, it prints the line as one of the log's, every
        O(slow) seconds while a task runs.
      - V(never) keeps none.
    type: str
    choices: [auto, always, never]
    default: auto
    env:
      - name: BCD_PASS_PROGRESS
    ini:
      - section: callback_pass_report
        key: progress
  slow:
    description:
      - Seconds after which the line says of a host that it is waited for.
    type: int
    default: 30
    env:
      - name: BCD_PASS_SLOW
    ini:
      - section: callback_pass_report
        key: slow
  json_path:
    description:
      - A file that gets what the table and the lines below it say, as JSON, at the end of the run. Its directory has to
        be there. Only the account that runs Ansible may read the file, which takes the place of an earlier one whole or
        not at all.
      - Of each host V(state), V(planned) (nothing was done), the units V(changed), V(waits_for) and V(failed) (units by
        reason), and the sentences V(failures), V(waits), V(conditions), V(notes) and V(steps).
      - A file that cannot be written is a warning, and changes nothing in how the run ends.
    type: path
    env:
      - name: BCD_PASS_JSON
    ini:
      - section: callback_pass_report
        key: json_path
requirements:
  - Named in C(callbacks_enabled), as V(bettercompute.bcd.pass_report).
author:
  - bettercompute (@bettercompute)
"""

import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.callback import CallbackBase

from ..plugin_utils.pass_progress import Progress
from ..plugin_utils.pass_table import Pass
from ..plugin_utils.report import fault_of
from ..plugin_utils.terminal_line import FAULTS, PlainLines, TerminalLine, is_wanted
from ..plugin_utils.whole_file import PRIVATE, as_json, write_whole

OURS = "bettercompute.bcd."
STATUS = "bcd_converge_status"  # the fact by which the role tells what a task with no_log came to
DEBUG = ("debug", "ansible.builtin.debug")  # the strategy that asks after each failure
LAYOUT = "bcd_layout_waits"  # the fact by which the gate of MIG layouts tells which one waits


class CallbackModule(CallbackBase):
    """Collects the modules' results, and prints them at the end; shows how far the run is meanwhile."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "bettercompute.bcd.pass_report"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._pass = Pass()
        self._hidden: dict[str, bool] = {}  # by host, whether what no_log hides is a failure
        self._progress = Progress()
        self._lock = threading.Lock()  # of the progress, which the line's thread reads
        self._line: TerminalLine | PlainLines | None = None

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A play, or its next batch."""
        batch, every = _hosts_of(play)
        with self._lock:
            self._progress.begin(str(play._uuid), batch, every)
        if self._line is None:
            self._show(play)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """A task, on its first host."""
        self._begin(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """A handler, on its first host."""
        self._begin(task)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """A host begins with a task."""
        with self._lock:
            self._progress.start(host.get_name(), task._uuid, time.monotonic())

    def v2_runner_retry(self, result: Any) -> None:
        """A task that is tried again, as `until` has it."""
        self._note(result, "tried again")

    def v2_runner_on_ok(self, result: Any) -> None:
        """A module's result."""
        self._take(result)
        self._end(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A host for which there was nothing to do."""
        self._end(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """A module's result in a loop."""
        self._take(result)
        self._note_item(result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        """A module's result in a loop, failed."""
        self._take_failed(result)
        self._note_item(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A module's result, failed. A failure that came to no result is told as it is."""
        if "results" not in result._result:  # a loop's: each of them has come by itself
            self._take_failed(result)
        self._end(result, lost=not ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host that could not be reached."""
        why = f"unreachable: {result._result.get('msg') or 'no reason given'}"
        self._pass.fault(result._host.get_name(), why, ours=_is_ours(result))
        self._end(result, lost=True)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The end of the run."""
        if self._line is not None:
            self._line.close()
            self._line = None
        for host in sorted(host for host, failed in self._hidden.items() if failed):
            self._pass.fault(host, "failed, and no_log hides why")
        lines = self._pass.lines()
        if lines:
            self._display.banner("PASS REPORT")
            for line in lines:
                self._display.display(line)
        self._write()

    # -- the table

    def _take(self, result: Any) -> bool:
        """Whether the result is one of ours, or tells what one of ours came to that was hidden."""
        planned, host = bool(result._task.check_mode), result._host.get_name()
        facts = result._result.get("ansible_facts")
        facts = facts if isinstance(facts, Mapping) else {}
        told = facts.get(STATUS)
        if LAYOUT in facts:
            self._pass.layout_waits(host, str(facts[LAYOUT] or ""))
        if _is_ours(result) and "censored" in result._result:
            self._hidden[host] = bool(result.is_failed())
            return True
        if host in self._hidden and isinstance(told, Mapping):
            del self._hidden[host]
            return self._pass.tell(host, told, planned)
        return _is_ours(result) and self._pass.add(host, result._result, planned)

    def _take_failed(self, result: Any) -> None:
        if not self._take(result) and _is_ours(result):
            self._pass.fault(result._host.get_name(), fault_of(result._result) or "failed without a message")

    def _write(self) -> None:
        path = self.get_option("json_path")
        if not path:
            return
        try:
            write_whole(Path(os.path.abspath(path)), as_json(self._pass.document()), PRIVATE)
        except OSError as fault:
            self._display.warning(f"pass_report: {path} was not written, see to json_path: {fault.strerror or fault}")

    # -- the line

    def _show(self, play: Any) -> None:
        """Keep the line, where it is wanted and nobody debugs: the debugger talks to the terminal by itself."""
        wish, slow = self.get_option("progress"), max(1, int(self.get_option("slow")))
        if wish == "never" or constants.ENABLE_TASK_DEBUGGER or play.strategy in DEBUG:
            return
        try:
            if is_wanted(wish, sys.stdout, os.environ):
                line: TerminalLine | PlainLines = TerminalLine(self._display, sys.stdout, self._say)
            elif wish == "always":
                line = PlainLines(self._display, self._say, slow)
            else:
                return
            line.open()
        except FAULTS:
            return
        self._line = line

    def _say(self, columns: int) -> str:
        with self._lock:
            return self._progress.line(time.monotonic(), columns, max(1, int(self.get_option("slow"))))

    def _begin(self, task: Any) -> None:
        if self._line is not None and task.debugger not in (None, "never"):
            self._line.close()
            self._line = None
        with self._lock:
            self._progress.task(task._uuid, task.get_name(), alone=bool(task.run_once))

    def _end(self, result: Any, lost: bool = False) -> None:
        with self._lock:
            self._progress.finish(result._host.get_name(), result._task._uuid, lost)

    def _note_item(self, result: Any) -> None:
        variable = result._result.get("ansible_loop_var") or "item"
        item = result._result.get("_ansible_item_label", result._result.get(variable, ""))
        if item != "":  # of a task with no_log nothing is told
            self._note(result, f"{item} done")

    def _note(self, result: Any, said: str) -> None:
        with self._lock:
            self._progress.note(result._host.get_name(), said)


def _hosts_of(play: Any) -> tuple[list[str], int]:
    """The hosts of the play's batch that begins, and how many hosts the play has in all of its batches."""
    known = play.get_variable_manager().get_vars(play=play, include_hostvars=False)
    return [str(host) for host in known["ansible_play_batch"]], len(known["ansible_play_hosts_all"])


def _is_ours(result: Any) -> bool:
    return str(getattr(result._task, "resolved_action", None) or result._task.action).startswith(OURS)
