# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a whole host stand in several places, and are the same in each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.tools.results import TOP

MODULES = ("host_plan", "host_section")
# Where a module of a whole host is called, and which options each call leaves out.
CALLS = {
    "roles/bcd_converge/tasks/single.yml": [set()],
    # With the secret there is none to fail on.
    "roles/bcd_converge/tasks/secrets.yml": [{"fail_on_secrets"}],
    # A plan before, and of what is left after a failure, is of the whole host; each unit's turn is of that one. Secrets
    # are looked up once, for the closing task.
    "roles/bcd_converge/tasks/turns.yml": [
        {"only", "fail_on_secrets"},
        {"fail_on_secrets"},
        set(),
        {"fail_on_secrets"},
    ],
    "playbooks/plan.yml": [{"fail_on_secrets"}],
    # Nothing is applied, so no generation is reached, and what is proven is proven of all units.
    "playbooks/tasks/prove.yml": [{"only", "generation", "fail_on_secrets"}],
}
# Options that a call may set otherwise than by the role's variable of that name.
SET_BY_THE_CALL = {"only", "fail_on", "fail_on_secrets"}
# How the role itself comes to the secrets: no option of a module, and an option that is no variable.
OF_THE_ROLE, OF_THE_MODULE = {"mode", "join_token"}, {"fail_on_secrets"}


def spec(module: str) -> dict[str, Any]:
    """The module's argument spec, a literal that its main() gives and its action takes."""
    tree = ast.parse((TOP / f"plugins/modules/{module}.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "OPTIONS"
    ]
    assert value is not None
    literal: dict[str, Any] = ast.literal_eval(value)
    return literal


def documented() -> dict[str, Any]:
    """The options of the documentation fragment."""
    text = (TOP / "plugins/doc_fragments/section.py").read_text(encoding="utf-8")
    (fragment,) = re.findall(r'DOCUMENTATION = r"""\n(.*?)"""', text, re.DOTALL)
    options: dict[str, Any] = yaml.safe_load(fragment)["options"]
    return options


def of_the_role() -> dict[str, Any]:
    """The role's variables, as its argument spec declares them."""
    text = (TOP / "roles/bcd_converge/meta/argument_specs.yml").read_text(encoding="utf-8")
    options: dict[str, Any] = yaml.safe_load(text)["argument_specs"]["main"]["options"]
    return options


def calls(tasks: Any) -> Iterator[dict[str, Any]]:
    """The options of every call of a module of a whole host, at any depth."""
    if isinstance(tasks, list):
        for task in tasks:
            yield from calls(task)
    elif isinstance(tasks, dict):
        for key, value in tasks.items():
            if key in {f"bettercompute.bcd.{module}" for module in MODULES}:
                yield {name: of_variable(tasks, name, option) for name, option in value.items()}
            elif key in {"tasks", "block", "rescue", "always"}:
                yield from calls(value)


def of_variable(task: dict[str, Any], name: str, value: Any) -> Any:
    """An option's value; where it has none, the variable from which the action takes it (plugin_utils.role_options)."""
    if value is not None:
        return value
    assert task["vars"]["bcd_options_of"] == "bcd_converge"
    return f"bcd_converge_{name}"


def shape(option: dict[str, Any]) -> dict[str, Any]:
    """What a value may be."""
    return {key: option.get(key) for key in ("type", "elements", "choices")}


OPTIONS = spec("host_section")


def test_both_modules_take_the_same() -> None:
    assert spec("host_plan") == OPTIONS


def test_the_documentation_is_of_every_option() -> None:
    assert {name: shape(option) for name, option in documented().items()} == {
        name: shape(option) for name, option in OPTIONS.items()
    }
    assert {name: option.get("default") for name, option in documented().items()} == {
        name: option.get("default") for name, option in OPTIONS.items()
    }


def test_the_role_s_variables_are_the_options_and_the_mode() -> None:
    variables = {name: shape(option) for name, option in of_the_role().items()}
    assert variables.pop("bcd_converge_mode")["choices"] == ["single", "tasks"]
    options = {name: shape(option) for name, option in OPTIONS.items() if name not in OF_THE_MODULE}
    assert variables == {f"bcd_converge_{name}": option for name, option in options.items()}


def test_what_is_secret_is_so_in_the_role_too() -> None:
    secret = {f"bcd_converge_{name}" for name, option in OPTIONS.items() if option.get("no_log")}
    assert secret == {"bcd_converge_secrets"}
    assert {name for name, option in of_the_role().items() if option.get("no_log")} == secret


def test_a_task_that_has_the_token_shows_nothing_and_leaves_no_file() -> None:
    """A module that breaks down shows what it was given, and one that is copied has it in a file."""
    found = []
    for path in sorted((TOP / "roles" / "bcd_converge" / "tasks").glob("*.yml")):
        tasks = tasks_of(yaml.safe_load(path.read_text(encoding="utf-8")))
        found += [task for task in tasks if "bcd_converge_token" in str(task)]
    (task,) = found
    assert task["no_log"] is True
    assert task["vars"]["ansible_pipelining"] is True


def tasks_of(tree: Any) -> Iterator[dict[str, Any]]:
    """The tasks of a file of tasks, without the blocks that hold them."""
    for task in tree:
        inner = [task[key] for key in ("block", "rescue", "always") if key in task]
        if not inner:
            yield task
        for more in inner:
            yield from tasks_of(more)


def test_the_token_of_a_join_is_no_option_of_the_role() -> None:
    """Ansible templates every option when it checks them, which would look the token up on every host."""
    assert "bcd_converge_join_token" not in of_the_role()


def test_the_role_s_readme_has_every_variable() -> None:
    text = (TOP / "roles/bcd_converge/README.md").read_text(encoding="utf-8")
    (heading, *rows) = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    named = {name for row in (heading, *rows) for name in re.findall(r"`(?:bcd_converge)?_(\w+)`", row)}
    assert named == {*OPTIONS, *OF_THE_ROLE} - OF_THE_MODULE


@pytest.mark.parametrize("path", CALLS)
def test_a_call_gives_every_option_by_the_role_s_variable(path: str) -> None:
    found = list(calls(yaml.safe_load((TOP / path).read_text(encoding="utf-8"))))
    assert [OPTIONS.keys() - given.keys() for given in found] == CALLS[path]
    for given in found:
        assert given.keys() <= OPTIONS.keys()
        for name in given.keys() - SET_BY_THE_CALL:
            # The role's bcd_converge_section is bcd_converge_units, or says that it is missing.
            assert re.search(rf"\bbcd_converge_({name}{'|section' if name == 'units' else ''})\b", str(given[name]))


def test_no_other_call_of_a_whole_host_is_shipped() -> None:
    files = [path for folder in ("roles", "playbooks") for path in (TOP / folder).rglob("*.yml")]
    found = {
        str(path.relative_to(TOP)) for path in files if re.search(r"bcd\.host_(plan|section):", path.read_text("utf-8"))
    }
    assert found == set(CALLS)
