# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of a module whose pass goes through the program bcd: where that is installed on the host as it is here, by
one command and with nothing sent but the request; elsewhere carried to the host's Python with it (see carried.py).

So no module is built, and none compiled. Where the request cannot come on standard input, and wherever it cannot be
known that all is as the module would have it, the module runs. All that Ansible does with a module's result it does
with the program's: this action only says that the module is the request and its interpreter the program.
"""

# What an import that fails leaves out is asked for before it is used.
# pylint: disable=used-before-assignment

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from shlex import quote
from typing import Any, NamedTuple

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action.normal import ActionModule as Normal

from ..module_utils.plan.installed import SCRIPT
from .carried import ANSWER, payload
from .once_a_run import once
from .program import program
from .program_marks import Marks
from .program_request import COMMAND, Unanswered, Valid, answer, as_module, request, validated
from .role_options import SKIPPED, by_role, is_plain

try:
    from ansible.executor.module_common import _BuiltModule  # ansible-core 2.19 and newer
    from ansible.module_utils.common.json import Direction, get_module_encoder
except ImportError:
    from ansible.module_utils.common.json import AnsibleJSONEncoder

    _BuiltModule = None

CHOICE = "bcd_program_pass"
AUTO = "auto"
INTERNAL = "_ansible_"  # what Ansible adds to a task's options, and leaves there when it tries again
INSTALLED, CARRIED = "bcd-program", "bcd-carried"  # in Ansible's own folder of this run
INTERPRETER = "ansible_python_interpreter"
ANY_MODULE = "ansible.builtin.ping"  # where a Python is that runs it, ours is


class Way(NamedTuple):
    """One way to have the program make the pass on a host, and the marks of those on which it does not.

    `data` is what the host reads; `words` the command, which needs the host's Python before it if not `is_complete`.
    """

    name: str
    host: str
    marks: Marks
    data: bytes
    words: str
    is_complete: bool


class Asked(NamedTuple):
    """What the program is asked, and what is to be done with its answer."""

    host: str
    data: bytes
    valid: Valid
    tells_invocation: bool
    is_wanted: bool  # by the host's variable, wherever else it was not found


class ThroughProgram(Normal):
    """Runs the module `MODULE` of these options: by the program that is installed, one that is carried, or itself."""

    MODULE = ""
    OPTIONS: Mapping[str, Any] = {}
    RULES: Mapping[str, Any] = {}
    _asked: Asked | None = None
    _way: Way | None = None
    _command = ""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> Any:
        """The task's result, with options that stand in variables (see role_options)."""
        options = by_role(self._task.args, task_vars or {}, self._templar)
        if options is None:
            return dict(SKIPPED)
        self._task.args = options
        return super().run(tmp, task_vars)

    def _execute_module(self, *words: Any, **named: Any) -> Any:
        """The result, of the program or of the module."""
        asked = self._asked = self._request(named.get("task_vars") or {})
        for way in () if asked is None else _ways(asked):
            self._way, self._command = way, ""
            try:
                result = super()._execute_module(*words, **named)
                way.marks.present()
                return result
            except Unanswered:
                way.marks.absent(way.host)
            finally:
                self._way = None
        return super()._execute_module(*words, **named)

    def _configure_module(self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> Any:
        """The module as it is to be run: the request."""
        way = self._way
        if way is None:
            return super()._configure_module(module_name, module_args, task_vars)
        self._command = way.words if way.is_complete else f"{self._interpreter(task_vars)} {way.words}"
        shebang = f"#!{SCRIPT}"  # of messages alone: the command is given below
        if _BuiltModule is None:
            return "new", shebang, way.data, SCRIPT
        built = _BuiltModule(
            b_module_data=way.data, module_style="new", shebang=shebang, serialization_profile="legacy"
        )
        return built, SCRIPT

    def _interpreter(self, task_vars: dict[str, Any]) -> str:
        """The words that call the host's Python for modules, as Ansible finds it for this task."""
        named = of_host(self._task.delegate_to, task_vars).get(INTERPRETER)
        if isinstance(named, str) and named.startswith("/") and is_plain(named):
            return named.strip()
        found = super()._configure_module(ANY_MODULE, {}, task_vars)
        shebang: str = found[1] if _BuiltModule is None else found[0].shebang
        return shebang[2:].strip()

    def _low_level_execute_command(self, cmd: str, *words: Any, **named: Any) -> Any:
        """What a command did; the program's with its result made a module's. Raises Unanswered."""
        if self._way is None or self._asked is None or not self._command:  # until then, Ansible looks for a Python
            return super()._low_level_execute_command(cmd, *words, **named)
        done = super()._low_level_execute_command(self._command, *words, **named)
        found = answer(done["rc"], done["stdout"])
        if found is None:
            return done
        result, lines, place = found
        params, secret = self._asked.valid
        lines[place] = json.dumps(as_module(result, params if self._asked.tells_invocation else None, secret))
        return {**done, "stdout": "\n".join(lines), "stdout_lines": lines}

    def _request(self, variables: Mapping[str, Any]) -> Asked | None:
        """What to ask the program, None where it is not to be asked."""
        host = str(self._task.delegate_to or variables.get("inventory_hostname", ""))
        wanted = of_host(self._task.delegate_to, variables).get(CHOICE, AUTO)
        wanted = choice(wanted if is_plain(wanted) else self._templar.template(wanted))
        if wanted is False or not self._may_ask():
            return None
        internal: dict[str, Any] = {}
        self._update_module_args(self._task.action, internal, variables)
        if internal.get("_ansible_tracebacks_for"):  # where in a module a failure was made is its own to say
            return None
        given = plain(self._task.args)
        valid = None if given is None else validated(given, self.OPTIONS, self.RULES)
        if valid is None:
            return None
        try:
            code = _once("code", _code).decode()
        except OSError:  # Ansible's folder of this run is full, say: the module tells of that, or does without
            return None
        data = request(self.MODULE, valid.params, internal["_ansible_check_mode"], code)
        return Asked(host, data, valid, internal.get("_ansible_inject_invocation", True), bool(wanted))

    def _may_ask(self) -> bool:
        """Whether a program there can do all that the module would, as this task is to be run."""
        if self._task.async_val or getattr(self._connection._shell, "_IS_WINDOWS", False):
            return False
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        # The request comes on standard input, as a module does that is pipelined.
        return not environment and self._is_pipelining_enabled("new")


def _ways(asked: Asked) -> Iterator[Way]:
    """By which ways the host is to be asked, the cheapest first; each is looked for once it is its turn."""
    host, data = asked.host, asked.data
    here, carried = (Marks(os.path.join(constants.DEFAULT_LOCAL_TMP, folder)) for folder in (INSTALLED, CARRIED))
    with suppress(OSError):
        if not here.is_absent(host) and (asked.is_wanted or here.should_ask(host)):
            yield Way("installed", host, here, data, COMMAND, True)
        if not carried.is_absent(host):
            yield Way("carried", host, carried, _once("payload", payload) + data, f"-I -c {quote(ANSWER)}", False)


def _once(name: str, make: Callable[[], bytes]) -> bytes:
    return once(constants.DEFAULT_LOCAL_TMP, f"bcd-program-{name}", make)


def _code() -> bytes:
    return program().sha256.encode()


def of_host(delegate: str | None, variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The variables of the host on which a task runs."""
    delegated: Mapping[str, Any] | None = (variables.get("ansible_delegated_vars") or {}).get(delegate)
    return delegated or variables


def choice(value: Any) -> bool | None:
    """What CHOICE says: True to ask every host, False to ask none, None to find out which ones have it."""
    if isinstance(value, str) and value.strip().lower() == AUTO:
        return None
    try:
        return bool(boolean(value))
    except TypeError:
        raise AnsibleActionFail(f"{CHOICE} is {value!r}: give {AUTO}, true or false") from None


def plain(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """A task's options as a module reads them: through JSON, with what is vaulted laid open.

    None where JSON has no such value, which Ansible tells of when it builds the module.
    """
    given = {name: value for name, value in given.items() if not name.startswith(INTERNAL)}
    try:
        if is_plain(given):
            text = json.dumps(given)
        elif _BuiltModule is None:
            text = json.dumps(given, cls=AnsibleJSONEncoder, vault_to_text=True)
        else:
            text = json.dumps(given, cls=get_module_encoder("legacy", Direction.CONTROLLER_TO_MODULE))
    except TypeError:
        return None
    found: dict[str, Any] = json.loads(text)
    return found
