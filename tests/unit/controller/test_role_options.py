# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the action takes from the role's variables: what a template for each of them would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible import release
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.role_options import by_role, is_plain
from tests.tools.results import TOP

ROLE = TOP / "roles" / "bcd_converge"
IS_BEFORE_TRUST = release.__version__.startswith(("2.16.", "2.17.", "2.18."))
TASK = {"units": None, "known": None, "label": None, "fail_on": None, "fail_on_secrets": True}
SECTION = {"sysctl": {"vm.swappiness": 10}, "kernel-modules": {"load": ["tun"]}}


def loaded(path: Path) -> dict[str, Any]:
    """Variables as Ansible reads them: their texts are templates for it, which since 2.19 it has to be told."""
    trust: dict[str, Any] = {} if IS_BEFORE_TRUST else {"trusted_as_template": True}
    found: dict[str, Any] = DataLoader().load_from_file(str(path), **trust)
    return found


def options(folder: Path, text: str, task: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The options of a task of the role on a host that has these variables besides the role's own."""
    own = folder / "variables.yml"
    own.write_text(text, encoding="utf-8")
    values: dict[str, Any] = {}
    for path in (ROLE / "defaults" / "main.yml", ROLE / "vars" / "main.yml", own):
        values.update(loaded(path))
    values.update(bcd_options_of="bcd_converge", inventory_hostname="one", ansible_check_mode=False)
    if IS_BEFORE_TRUST:
        values["omit"] = "__omit_place_holder__of_this_run"
    return by_role(task or TASK, values, Templar(DataLoader(), variables=values))


def test_what_is_no_task_of_a_role_stays_as_it_is() -> None:
    assert by_role({"units": {}, "known": None}, {"bcd_converge_known": ["cpu"]}, None) == {"units": {}, "known": None}


def test_options_without_a_value_are_the_variables_and_those_that_are_not_defined_are_not_given(tmp_path: Path) -> None:
    text = "bcd_converge_units: {sysctl: {vm.swappiness: 10}, kernel-modules: {load: [tun]}}"
    found = {"units": SECTION, "label": "one", "fail_on": "failed", "fail_on_secrets": True}
    assert options(tmp_path, text) == found


def test_a_value_in_the_task_wins_over_the_variable(tmp_path: Path) -> None:
    found = options(
        tmp_path, "{bcd_converge_units: {}, bcd_converge_known: [cpu]}", {**TASK, "known": [], "label": "x"}
    )
    assert found is not None
    assert (found["known"], found["label"]) == ([], "x")


def test_templates_in_variables_are_rendered_and_what_they_lack_is_left_out(tmp_path: Path) -> None:
    text = """
bcd_converge_units: {sysctl: {vm.swappiness: "{{ wanted }}"}, kernel-modules: {load: ["{{ name }}"]}}
bcd_converge_known: "{{ what_is_not_defined }}"
bcd_converge_label: "{{ name }}-{{ inventory_hostname }}"
name: tun
wanted: "10"
"""
    found = options(tmp_path, text)
    assert found is not None
    assert found["units"]["kernel-modules"] == {"load": ["tun"]}
    assert str(found["units"]["sysctl"]["vm.swappiness"]) == "10"
    assert found["label"] == "tun-one"
    assert "known" not in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{bcd_converge_units: {}, bcd_converge_mode: Tasks}", "it is single or tasks"),
        ("{bcd_converge_units: {}, bcd_converge_mode: '{{ what_is_not_defined }}'}", "what_is_not_defined"),
    ],
)
def test_a_mode_that_is_none_is_an_error_by_the_role_s_variables(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong with the units takes a lookup to say: tests/sim/test_role_converge.py, test_playbooks.py."""
    with pytest.raises(AnsibleError, match=said):
        options(tmp_path, text)


@pytest.mark.parametrize("option", ["fail_on", "label"])
def test_an_option_with_a_default_is_not_left_out_for_what_it_uses(tmp_path: Path, option: str) -> None:
    with pytest.raises(AnsibleError, match="what_is_not_defined"):
        options(tmp_path, f"{{bcd_converge_units: {{}}, bcd_converge_{option}: '{{{{ what_is_not_defined }}}}'}}")


def test_a_list_given_as_text_is_what_a_template_makes_of_it(tmp_path: Path) -> None:
    """As `-e bcd_converge_known=...` gives it: a list before ansible-core 2.19, and the text since."""
    text = "['cpu', 'sysctl']"
    found = options(tmp_path, f'{{bcd_converge_units: {{}}, bcd_converge_known: "{text}"}}')
    assert found is not None
    assert found["known"] == (["cpu", "sysctl"] if IS_BEFORE_TRUST else text)


def test_a_mode_by_a_template_and_a_section_as_text_or_as_it_travels(tmp_path: Path) -> None:
    found = options(tmp_path, "{bcd_converge_units: 'sysctl: {}', bcd_converge_mode: '{{ m }}', m: single}")
    assert found is not None
    assert found["units"] == "sysctl: {}"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("label", "{bcd_converge_units: {}, bcd_converge_label: '{{ what_is_not_defined }}'}"),
        ("known", "{bcd_converge_units: {}, bcd_converge_known: '{{ 1 | what_is_no_filter }}'}"),
        ("units", "{bcd_converge_units: {cpu: '{{ 1 | what_is_no_filter }}'}}"),
    ],
)
def test_an_error_names_the_variable_that_it_is_of(tmp_path: Path, option: str, text: str) -> None:
    with pytest.raises(AnsibleError, match=f"bcd_converge_{option}"):
        options(tmp_path, text, {"units": None, option: None})


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "a", "{a}", '{"a": {"b": 1}}', [], {"a": [{"b": "c"}]}])
def test_what_has_no_template_is_plain(value: Any) -> None:
    assert is_plain(value)


@pytest.mark.parametrize(
    "value",
    ["{{ a }}", "x{%if a%}", "{# a #}", "#jinja2: variable_start_string: '['", [["{{ a }}"]], {"a": {"b": "{{ c }}"}}],
)
def test_what_may_have_one_is_none(value: Any) -> None:
    assert not is_plain(value)


@pytest.mark.parametrize("value", [b"a", (1,), {1: 2}, object()])
def test_what_json_has_not_is_none(value: Any) -> None:
    assert not is_plain(value)
