# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass asked of the program on a host: the request, and what came back (see front/for_controller).

The controller does with options and result what a module's AnsibleModule does on the host: it validates the one, and
puts `invocation` into the other and takes secrets out of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values

from ..module_utils.plan.installed import ANOTHER, MADE, REQUEST, SCRIPT
from ..module_utils.plan.release import VERSION
from .carried import TOO_OLD

# For a shell. Whatever else has that name is not called, least of all with a secret on its standard input. That is read
# to its end all the same: to ssh, an input that is closed before is a host that cannot be reached.
COMMAND = (
    f'{{ read -r first && read -r made; }} < {SCRIPT} && [ "$made" = "{MADE}" ] || {{ cat > /dev/null; exit 127; }}; '
    f"exec {SCRIPT} {REQUEST}"
)
NOT_THERE = (126, 127)  # of a shell: it cannot be run, and there is none
CALLED_WRONGLY = 64  # of an older program, which does not know the word
START = '{"bcd_answer": '


class Unanswered(Exception):
    """The program is not there, or is another one: nothing was done."""


class Valid(NamedTuple):
    """A module's options as it would have them, and the values among them that no result may show."""

    params: dict[str, Any]
    secret: frozenset[str]


def validated(given: Mapping[str, Any], spec: Mapping[str, Any], rules: Mapping[str, Any]) -> Valid | None:
    """The options, None where the module has to say what is wrong with them. `given`: values as JSON has them."""
    found = ArgumentSpecValidator(spec, **rules).validate(given)
    if found.error_messages:
        return None
    return Valid(found.validated_parameters, frozenset(found._no_log_values))


def request(module: str, params: Mapping[str, Any], check: bool, code: str) -> bytes:
    """What the program reads."""
    asked = {"version": VERSION, "code": code, "module": module, "params": params, "check": check}
    return json.dumps(asked).encode("ascii")


def answer(rc: int, stdout: str) -> tuple[dict[str, Any], list[str], int] | None:
    """The result, all lines of the output, and which of them it came in. Raises Unanswered.

    None where the program may have made some of the pass and was killed, say: Ansible tells of it as of a module.
    """
    if rc in (*NOT_THERE, ANOTHER, CALLED_WRONGLY, TOO_OLD) and START not in stdout:  # a login may print something
        raise Unanswered
    lines = stdout.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(START) and rc == 0:
            try:
                result = json.loads(line)["bcd_answer"]
            except ValueError:
                return None
            if isinstance(result, dict):
                return result, lines, number
    return None


def as_module(result: Mapping[str, Any], params: Mapping[str, Any] | None, secret: Iterable[str]) -> dict[str, Any]:
    """The result as the module would print it; `params`: None where Ansible is not to have its invocation."""
    whole = dict(result)
    if whole.get("msg"):
        whole["failed"] = True
    if params is not None:
        whole["invocation"] = {"module_args": params}
    if not secret:
        return whole
    kept = {key: value for key, value in whole.items() if value is None or isinstance(value, bool)}
    return {**remove_values(whole, set(secret)), **kept}
