# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of the program on a host, and what is taken of what it says; options and result as a module's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.install import render
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import MADE, SCRIPT
from ansible_collections.bettercompute.bcd.plugins.modules import cdi_holds, host_plan, host_section
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program_request import (
    COMMAND,
    Unanswered,
    answer,
    as_module,
    request,
    validated,
)

UNITS = {"units": {"sysctl": {"vm.swappiness": 10}}}


def test_options_are_made_whole_as_the_module_has_them() -> None:
    found = validated(
        {**UNITS, "generation": "4", "secrets": {"a": "geheim", "b": {"c": ["tief"]}}},
        host_section.OPTIONS,
        host_section.RULES,
    )
    assert found is not None
    assert found.params == {
        **dict.fromkeys(host_section.OPTIONS),
        **UNITS,
        "generation": 4,
        "secrets": {"a": "geheim", "b": {"c": ["tief"]}},
        "fail_on": "failed",
        "fail_on_secrets": False,
        "max_disruption": "gpu",
    }
    assert found.secret == {"geheim", "tief"}


@pytest.mark.parametrize(
    ("module", "given"),
    [
        (host_section, {}),
        (host_section, {**UNITS, "wire_units": []}),
        (host_section, {**UNITS, "fly": True}),
        (host_section, {**UNITS, "generation": "four"}),
        (host_section, {"units": "no mapping"}),
        (host_section, {"wire_units": [{"unit": "sysctl"}]}),
        (host_plan, {**UNITS, "max_disruption": "reboot"}),
        (cdi_holds, {}),
        (cdi_holds, {"assignments": [{"allocation_id": "a"}]}),
        (cdi_holds, {"assignments": [], "slot_count": "many"}),
    ],
)
def test_what_is_wrong_with_options_is_left_for_the_module_to_say(module: Any, given: dict[str, Any]) -> None:
    assert validated(given, module.OPTIONS, module.RULES) is None


def test_the_request_says_which_code_is_meant() -> None:
    assert json.loads(request("host_plan", {"label": "é\udcff"}, True, "c0de")) == {
        "version": "0.1.0",
        "code": "c0de",
        "module": "host_plan",
        "params": {"label": "é\udcff"},
        "check": True,
    }


@pytest.mark.parametrize("rc", [127, 126, 69, 64, 96])
def test_no_program_or_another_one_is_no_fault(rc: int) -> None:
    """Of a shell, of another code, of an older program that does not know the word, of a Python that is too old."""
    for stdout in ("", "Welcome\n"):  # what a login prints
        with pytest.raises(Unanswered):
            answer(rc, stdout)


def test_only_our_own_program_is_called(tmp_path: Path) -> None:
    """The command as a shell takes it: with the options on standard input, and none of it read before."""
    path = tmp_path / "bcd"
    command = COMMAND.replace(SCRIPT, str(path))

    def run() -> tuple[int, str]:
        done = subprocess.run(["/bin/sh", "-c", command], input="options", capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert run() == (127, "")
    for text in ("", "#!/bin/sh", "#!/bin/sh\necho foreign\n", f"#!/bin/sh\n\n{MADE}\necho foreign\n", "\0\xff\n"):
        path.write_text(text, encoding="latin-1")
        path.chmod(0o755)
        assert run() == (127, "")
    ours = render("/bin/sh", "0.1.0", "").partition("import")[0].replace(" -IB", "")
    path.write_text(ours + 'echo "$@"; cat', encoding="utf-8")
    assert run() == (0, "request\noptions")


@pytest.mark.parametrize("text", [None, "#!/bin/sh\necho foreign\n"])
def test_where_it_is_not_the_options_are_read_to_their_end(tmp_path: Path, text: str | None) -> None:
    """More of them than a pipe holds: to write where nobody reads is an error, and to ssh a host that is gone."""
    path = tmp_path / "bcd"
    if text is not None:
        path.write_text(text, encoding="ascii")
        path.chmod(0o755)
    with subprocess.Popen(["/bin/sh", "-c", COMMAND.replace(SCRIPT, str(path))], stdin=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        shell.stdin.write(b"x" * 1_000_000)
    assert shell.returncode == 127


def test_the_answer_is_found_among_what_a_login_prints() -> None:
    out = 'Welcome {"to": 1}\n\n{"bcd_answer": {"changed": true}}\nbye\n'
    found = answer(0, out)
    assert found is not None
    result, lines, place = found
    assert (result, lines[place]) == ({"changed": True}, '{"bcd_answer": {"changed": true}}')
    assert (lines[0], lines[-1]) == ('Welcome {"to": 1}', "bye")


@pytest.mark.parametrize(
    ("rc", "stdout"),
    [
        (0, ""),
        (137, ""),
        (0, '\n{"bcd_answer": {"changed": tr'),
        (0, '\n{"bcd_answer": []}'),
        (1, '\n{"bcd_answer": {}}'),
        (127, '\n{"bcd_answer": {}}'),
    ],
)
def test_what_cannot_be_an_answer_is_none_and_left_to_ansible(rc: int, stdout: str) -> None:
    """The pass may have been made in part: nobody makes it again unasked."""
    assert answer(rc, stdout) is None


def test_a_result_becomes_a_modules() -> None:
    params = {"units": {}, "secrets": {"a": "geheim"}, "label": None}
    whole = as_module({"changed": False, "notes": ["it said geheim"], "n": 3}, params, {"geheim"})
    assert whole == {
        "changed": False,
        "notes": ["it said ********"],
        "n": 3,
        "invocation": {
            "module_args": {"units": {}, "secrets": {"a": "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"}, "label": None}
        },
    }
    failed = as_module({"changed": False, "msg": "no"}, None, ())
    assert failed == {"changed": False, "msg": "no", "failed": True}
    assert "failed" not in as_module({"changed": False, "msg": ""}, None, ())
