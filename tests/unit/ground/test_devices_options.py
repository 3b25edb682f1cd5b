# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the holds stand in the module and in the role, and are the same in both."""

from __future__ import annotations

import ast
import re
from typing import Any

import yaml

from tests.tools.results import TOP

MODULE = "bettercompute.bcd.cdi_holds"
ROLE = TOP / "roles" / "bcd_devices"
OF_THE_ROLE = {"fail_on", "events_url", "events_headers", "events_ca_path"}
NOT_OF_THE_ROLE = {"acknowledge"}  # it acknowledges by itself what was delivered


def load(path: str) -> Any:
    return yaml.safe_load((ROLE / path).read_text(encoding="utf-8"))


def spec(module: str = "cdi_holds", runs: str = "run_holds") -> dict[str, Any]:
    """The module's argument spec, its constants put in."""
    tree = ast.parse((TOP / f"plugins/modules/{module}.py").read_text(encoding="utf-8"))
    constants = {
        node.target.id: ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }
    (call,) = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == runs]
    source = ast.unparse(call.args[0])
    source = constants.get(source, source)
    for name, value in constants.items():
        source = source.replace(f": {name}", f": {value}")
    found: dict[str, Any] = ast.literal_eval(source)
    return found


def shape(option: dict[str, Any]) -> dict[str, Any]:
    """What a value may be, at any depth."""
    inside = {name: shape(one) for name, one in option.get("options", {}).items()}
    same = {key: option.get(key) for key in ("type", "elements", "choices", "required")}
    return {**same, "no_log": bool(option.get("no_log")), "options": inside}


def test_the_role_s_variables_are_the_options_and_its_own() -> None:
    options = load("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    own = {f"bcd_devices_{name}" for name in OF_THE_ROLE}
    assert {name: shape(option) for name, option in options.items() if name not in own} == {
        f"bcd_devices_{name}": shape(option) for name, option in spec().items() if name not in NOT_OF_THE_ROLE
    }
    assert own <= set(options)


def test_what_is_signed_to_be_held_is_what_can_be_assigned() -> None:
    assert shape(spec("sign_spec", "run_sign")["devices"]) == shape(spec()["assignments"])


def test_the_role_gives_the_module_every_option() -> None:
    (block,) = load("tasks/main.yml")
    (given,) = [task[MODULE] for task in block["block"] if MODULE in task]
    # What is signed for the role bcd_converge counts here too.
    variables = {name: "spec" if name == "signed_spec" else name for name in spec() if name not in NOT_OF_THE_ROLE}
    assert given == {name: "{{ bcd_devices_" + variable + " | default(omit) }}" for name, variable in variables.items()}
    assert load("vars/main.yml")["bcd_devices_spec"] == (
        "{{ bcd_devices_signed_spec | default(bcd_converge_signed_spec) }}"
    )


def test_the_role_s_readme_has_every_variable() -> None:
    text = (ROLE / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(?:bcd_devices)?_(\w+)`", row)}
    assert named == (set(spec()) - NOT_OF_THE_ROLE) | OF_THE_ROLE


def test_headers_are_not_logged() -> None:
    (deliver, _report) = load("tasks/report.yml")
    (post,) = [task for task in deliver["block"] if "ansible.builtin.uri" in task]
    assert "bcd_devices_events_headers" in post["no_log"]
    assert (post["delegate_to"], post["become"]) == ("localhost", False)
