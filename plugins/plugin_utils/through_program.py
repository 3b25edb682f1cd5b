# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of a module whose pass goes through the program bcd, where that is installed on the host as it is here.

One command then, and no module is built, sent or compiled. Everywhere else, and wherever it cannot be known that all is
as the module would have it, the module runs. All that Ansible does with a module's result it does with the program's:
this action only says that the module is the request and its interpreter the program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action.normal import ActionModule as Normal

from .once_a_run import once
from .program import program
from .program_marks import Marks
from .program_request import COMMAND, Unanswered, Valid, answer, as_module, request, validated

try:
    from ansible.executor.module_common import _BuiltModule  # ansible-core 2.19 and newer
    from ansible.module_utils.common.json import Direction, get_module_encoder
except ImportError:
    from ansible.module_utils.common.json import AnsibleJSONEncoder

    _BuiltModule = None

CHOICE = "bcd_program_pass"
AUTO = "auto"
FOLDER = "bcd-program"  # in Ansible's own of this run


class Asked(NamedTuple):
    """What the program is asked, and what is to be done with its answer."""

    data: bytes
    valid: Valid
    tells_invocation: bool
    marks: Marks
    host: str


class ThroughProgram(Normal):
    """Runs the module `MODULE` of these options, by the program or by itself."""

    MODULE = ""
    OPTIONS: Mapping[str, Any] = {}
    RULES: Mapping[str, Any] = {}
    _asked: Asked | None = None

    def _execute_module(self, *words: Any, **named: Any) -> Any:
        """The result, of the program or of the module."""
        variables = named.get("task_vars") or {}
        asked = self._request(variables)
        if asked is None:
            return super()._execute_module(*words, **named)
        self._asked = asked
        try:
            result = super()._execute_module(*words, **named)
            asked.marks.present()
            return result
        except Unanswered as fault:
            asked.marks.absent(asked.host)
            if fault.why:
                self._display.warning(
                    f"{asked.host}: the program bcd that is installed there gave no result of {self.MODULE}: "
                    f"{fault.why}. "
                    f"The module makes the pass again, upon what it has done: see why, or set {CHOICE}: false"
                )
        finally:
            self._asked = None
        return super()._execute_module(*words, **named)

    def _configure_module(self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> Any:
        """The module as it is to be run: the request."""
        if self._asked is None:
            return super()._configure_module(module_name, module_args, task_vars)
        shebang = f"#!{COMMAND}"  # of messages alone: the command is given below
        if _BuiltModule is None:
            return "new", shebang, self._asked.data, COMMAND
        built = _BuiltModule(
            b_module_data=self._asked.data, module_style="new", shebang=shebang, serialization_profile="legacy"
        )
        return built, COMMAND

    def _low_level_execute_command(self, cmd: str, *words: Any, **named: Any) -> Any:
        """What a command did; the program's with its result made a module's. Raises Unanswered."""
        if self._asked is None:
            return super()._low_level_execute_command(cmd, *words, **named)
        done = super()._low_level_execute_command(COMMAND, *words, **named)
        result, lines, place = answer(done["rc"], done["stdout"], done["stderr"])
        params, secret = self._asked.valid
        lines[place] = json.dumps(as_module(result, params if self._asked.tells_invocation else None, secret))
        return {**done, "stdout": "\n".join(lines), "stdout_lines": lines}

    def _request(self, variables: Mapping[str, Any]) -> Asked | None:
        """What to ask the program, None where it is not to be asked."""
        wanted = choice(self._templar.template(variables.get(CHOICE, AUTO)))
        if wanted is False or not self._may_ask():
            return None
        marks = Marks(os.path.join(constants.DEFAULT_LOCAL_TMP, FOLDER))
        host = str(self._task.delegate_to or variables.get("inventory_hostname", ""))
        if marks.is_absent(host) or not (wanted or marks.should_ask(host)):
            return None
        internal: dict[str, Any] = {}
        self._update_module_args(self._task.action, internal, variables)
        if internal.get("_ansible_tracebacks_for"):  # where in a module a failure was made is its own to say
            return None
        valid = validated(plain(self._task.args), self.OPTIONS, self.RULES)
        if valid is None:
            return None
        code = once(constants.DEFAULT_LOCAL_TMP, "bcd-program-code", _code).decode()
        data = request(self.MODULE, valid.params, internal["_ansible_check_mode"], code)
        return Asked(data, valid, internal.get("_ansible_inject_invocation", True), marks, host)

    def _may_ask(self) -> bool:
        """Whether a program there can do all that the module would, as this task is to be run."""
        if self._task.async_val or getattr(self._connection._shell, "_IS_WINDOWS", False):
            return False
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        # The request comes on standard input, as a module does that is pipelined.
        return not environment and self._is_pipelining_enabled("new")


def _code() -> bytes:
    return program().sha256.encode()


def choice(value: Any) -> bool | None:
    """What CHOICE says: True to ask every host, False to ask none, None to find out which ones have it."""
    if isinstance(value, str) and value.strip().lower() == AUTO:
        return None
    try:
        return bool(boolean(value))
    except TypeError:
        raise AnsibleActionFail(f"{CHOICE} is {value!r}: give {AUTO}, true or false") from None


def plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """A task's options as a module reads them: through JSON, with what is vaulted laid open."""
    if _BuiltModule is None:
        text = json.dumps(given, cls=AnsibleJSONEncoder, vault_to_text=True)
    else:
        text = json.dumps(given, cls=get_module_encoder("legacy", Direction.CONTROLLER_TO_MODULE))
    found: dict[str, Any] = json.loads(text)
    return found
