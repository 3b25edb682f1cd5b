# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tasks go to the program, and which hosts: by the task, the connection and bcd_program_pass."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants
from ansible.errors import AnsibleActionFail

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER
from ansible_collections.bettercompute.bcd.plugins.modules import host_plan
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.through_program import (
    ThroughProgram,
    _ways,
    choice,
    plain,
)
from tests.tools.results import TOP


class Plan(ThroughProgram):
    """The action of a task host_plan, as far as it decides: nothing of it reaches a host."""

    MODULE, OPTIONS, RULES = "host_plan", host_plan.OPTIONS, host_plan.RULES
    pipelined = True

    def __init__(self, args: dict[str, Any], **task: Any) -> None:
        whole = {"async_val": 0, "environment": [], "delegate_to": None, "action": "host_plan", "check_mode": True}
        self._task = SimpleNamespace(args=args, **{**whole, **task})
        self._connection = SimpleNamespace(_shell=SimpleNamespace(_IS_WINDOWS=False))
        self._templar = SimpleNamespace(template=lambda value: value)
        self.internal: dict[str, Any] = {"_ansible_check_mode": True}

    def _is_pipelining_enabled(self, module_style: str, wrap_async: bool = False) -> bool:
        return self.pipelined

    def _update_module_args(self, module_name: Any, module_args: Any, task_vars: Any, *more: Any) -> None:
        module_args.update(self.internal)

    def _compute_environment_string(self, raw_environment_out: Any = None) -> str:
        for variables in self._task.environment:
            raw_environment_out.update(variables)
        return ""


UNITS: dict[str, Any] = {"units": {}}
HOST = {"inventory_hostname": "one"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ansible's folder of the run."""
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    return str(tmp_path)


def test_a_task_like_any_other_is_asked_of_the_program() -> None:
    asked = Plan(UNITS)._request(HOST)
    assert asked is not None
    assert (asked.host, asked.tells_invocation, asked.valid.params["fail_on"]) == ("one", True, "failed")
    assert b'"check": true' in asked.data


@pytest.mark.parametrize(
    "task", [{"async_val": 30}, {"environment": [{"LANG": "C"}]}, {"environment": [{}, {"HTTP_PROXY": "x"}]}]
)
def test_what_the_program_could_not_do_is_the_modules(task: dict[str, Any]) -> None:
    assert Plan(UNITS, **task)._request(HOST) is None


def test_an_environment_without_variables_is_none() -> None:
    assert Plan(UNITS, environment=[{}, {}])._request(HOST) is not None


def test_without_pipelining_nothing_goes_to_standard_input() -> None:
    plan = Plan(UNITS)
    plan.pipelined = False
    assert plan._request(HOST) is None


def test_on_windows_there_is_no_program() -> None:
    plan = Plan(UNITS)
    plan._connection._shell._IS_WINDOWS = True
    assert plan._request(HOST) is None


@pytest.mark.parametrize(
    "name", [*(unit.replace("-", "_") for unit in ORDER), "host_section", "host_plan", "cdi_holds"]
)
def test_its_module_s_options_are_each_action_s(name: str) -> None:
    plugins = "ansible_collections.bettercompute.bcd.plugins"
    action = importlib.import_module(f"{plugins}.action.{name}").ActionModule
    module = importlib.import_module(f"{plugins}.modules.{name}")
    assert issubclass(action, ThroughProgram)
    assert action.OPTIONS is module.OPTIONS
    found = action.MODULE, action.RULES
    assert found == (name, getattr(module, "RULES", {}))


def test_the_units_modules_bring_the_controller_nothing_but_options() -> None:
    """It would compile their files anew in every run."""
    names = [unit.replace("-", "_") for unit in ORDER]
    text = f"""
import importlib, sys
for name in {names}:
    importlib.import_module("ansible_collections.bettercompute.bcd.plugins.modules." + name)
print([name for name in sys.modules if ".module_utils" in name])
"""
    env = {**os.environ, "PYTHONPATH": str(TOP / ".build")}
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, env=env)
    assert done.stdout == "[]\n"


def test_a_task_that_is_tried_again_is_asked_again() -> None:
    asked = Plan({**UNITS, "_ansible_check_mode": True, "_ansible_version": "2.16.0"})._request(HOST)
    assert asked is not None
    assert b"_ansible" not in asked.data


@pytest.mark.parametrize("given", [{}, {"units": "x"}, {"units": {}, "wire_units": []}, {"units": {}, "fly": 1}])
def test_wrong_options_are_the_modules_to_refuse(given: dict[str, Any]) -> None:
    assert Plan(given)._request(HOST) is None


def test_where_tracebacks_are_wanted_the_module_makes_them() -> None:
    plan = Plan(UNITS)
    plan.internal["_ansible_tracebacks_for"] = ["error"]
    assert plan._request(HOST) is None


def test_where_ansible_wants_no_invocation_none_is_told() -> None:
    plan = Plan(UNITS)
    plan.internal["_ansible_inject_invocation"] = False
    asked = plan._request(HOST)
    assert asked is not None
    assert asked.tells_invocation is False


def ways(host: str = "one", **variables: Any) -> list[str]:
    """By which ways the host's program is asked, one after the other, where none gives a result."""
    asked = Plan(UNITS, delegate_to=host)._request(variables)
    found = []
    for way in [] if asked is None else _ways(asked):
        assert way.host == host  # where the task runs is what counts
        found.append(way.name)
        way.marks.absent(way.host)
    return found


def test_a_host_is_asked_by_each_way_once_in_a_run_whatever_is_wanted() -> None:
    assert ways() == ["installed", "carried"]
    for wanted in ("auto", True):
        assert ways(bcd_program_pass=wanted) == []
    assert ways("two") == ["installed", "carried"]


def test_what_is_wanted_wins_over_what_other_hosts_have() -> None:
    assert ways(bcd_program_pass=False) == []
    for host in ("a", "b", "c"):
        assert ways(host) == ["installed", "carried"]
    assert ways("d") == ["carried"]
    assert ways("e", bcd_program_pass=True) == ["installed", "carried"]


@pytest.mark.parametrize(
    ("value", "means"),
    [
        ("auto", None),
        (" Auto", None),
        (True, True),
        ("yes", True),
        ("true", True),
        (1, True),
        (False, False),
        ("no", False),
    ],
)
def test_what_is_wanted_is_auto_or_a_truth(value: Any, means: bool | None) -> None:
    assert choice(value) is means


@pytest.mark.parametrize("value", ["maybe", "", None, 7, {}])
def test_what_is_wanted_otherwise_is_refused(value: Any) -> None:
    with pytest.raises(AnsibleActionFail, match=r"bcd_program_pass is .*: give auto, true or false"):
        choice(value)


def test_options_are_plain_values() -> None:
    found = plain({"units": {"a": (1, 2)}, "label": "x"})
    assert found is not None
    assert found == {"units": {"a": [1, 2]}, "label": "x"}
    assert [type(value) for value in found.values()] == [dict, str]


@pytest.mark.parametrize("value", [b"bytes", object()])
def test_values_that_no_module_can_be_given_are_the_modules_to_refuse(value: Any) -> None:
    assert Plan({"units": {"sysctl": {"vm.swappiness": value}}})._request(HOST) is None


def test_of_a_task_that_is_delegated_the_other_hosts_variable_counts() -> None:
    variables = {**HOST, "bcd_program_pass": False, "ansible_delegated_vars": {"two": {"bcd_program_pass": "auto"}}}
    asked = Plan(UNITS, delegate_to="two")._request(variables)
    assert asked is not None
    assert asked.host == "two"
    assert Plan(UNITS)._request(variables) is None


def test_where_the_runs_own_folder_takes_nothing_the_module_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Plan(UNITS)._request(HOST)
    assert asked is not None
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", "/dev/null/x")
    assert [*_ways(asked)] == []
    assert Plan(UNITS)._request(HOST) is None
