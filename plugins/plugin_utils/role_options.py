# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task's options by the variables of its role: `known` of the role r is what the variable r_known says.

In the process of every host Ansible compiles each template of a task anew. With one for each option, and those of the
variables behind them, that was more than all else which a converged host cost the controller. So a task that says whose
role it is, by a variable of its own, leaves its options without a value, and the action takes what stands in the
variables. Ansible renders those in which a template may be, and then says what it would have said of the option.
"""

# What an import that fails leaves out is asked for before it is used.
# pylint: disable=used-before-assignment

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible.module_utils.parsing.convert_bool import boolean

try:
    from ansible.errors import AnsibleValueOmittedError  # ansible-core 2.19 and newer, as the next
    from ansible.template import trust_as_template
except ImportError:
    from ansible.executor.task_executor import remove_omit

    trust_as_template = None

    class AnsibleValueOmittedError(Exception):  # type: ignore[no-redef]
        """Not raised there: a value that is left out is a text, `omit`."""


from ansible.errors import AnsibleError

ROLE = "bcd_options_of"  # a task's variable: the role by whose variables it has its options
UNITS, MODE, SINGLE, LABEL = "units", "mode", "single", "{{ inventory_hostname }}"
# Variables of the role, asked where its mode or its units are no plain values: whether the task is for this host, else
# an error; and the units, an error where none are given.
IS_DUE, SECTION = "in_one_task", "section"
WITH_DEFAULT = ("fail_on", "label")  # by the role: where what they use is not defined, that is an error
TEMPLATE_STARTS = ("{{", "{%", "{#")
LITERAL_STARTS = ("[", "{")  # of a text that a template turns into a list or mapping, before ansible-core 2.19

SKIPPED = {"changed": False, "skipped": True, "skip_reason": "Conditional result was False"}  # as `when` has it


class Omitted(Exception):
    """The variable says that the option is not given."""


class Variables(NamedTuple):
    """A host's variables with what renders them."""

    values: Mapping[str, Any]
    templar: Any

    def rendered(self, template: Any) -> Any:
        """What Ansible makes of a template. Raises Omitted, AnsibleError."""
        try:
            value = self.templar.template(template)
        except AnsibleValueOmittedError:
            raise Omitted from None
        if trust_as_template is None:
            omit = self.values.get("omit")
            if isinstance(value, str) and value == omit:
                raise Omitted
            value = remove_omit({"value": value}, omit)["value"]
        return value

    def option(self, role: str, option: str) -> Any:
        """The value of an option's variable, as a template gives it. Raises Omitted where it is not defined.

        AnsibleError where an option that has a default uses what is not.
        """
        name = f"{role}_{option}"
        if name not in self.values:
            raise Omitted
        value = self.values[name]
        if is_plain(value) and not (trust_as_template is None and _looks_literal(value)):
            return value
        if value == LABEL and is_plain(self.values.get("inventory_hostname")):
            return self.values["inventory_hostname"]
        template = f"{{{{ {name} }}}}" if option in WITH_DEFAULT else f"{{{{ {name} | default(omit) }}}}"
        return self.rendered(template if trust_as_template is None else trust_as_template(template))

    def units(self, name: str) -> Any:
        """The units as a mapping or a text; None where it takes more to know of them."""
        value = self.values.get(name)
        if not is_plain(value):
            try:
                value = self.rendered(value)
            except (AnsibleError, Omitted):
                return None
        return value if isinstance(value, (dict, str)) else None


def by_role(args: Mapping[str, Any], values: Mapping[str, Any], templar: Any) -> dict[str, Any] | None:
    """The options of a task: `args`, or where it names its role those that have a value, with the role's.

    None where the role has nothing to do on the host. Raises AnsibleError.
    """
    role = values.get(ROLE)
    if role is None:
        return dict(args)
    variables = Variables(values, templar)
    units = variables.units(f"{role}_{UNITS}")
    is_usual = units is not None and values.get(f"{role}_{MODE}") == SINGLE
    if not is_usual and not boolean(variables.rendered(values[f"{role}_{IS_DUE}"])):
        return None
    found = {}
    for name, value in args.items():
        try:
            if value is not None:
                found[name] = value
            elif name != UNITS:
                found[name] = variables.option(role, name)
            else:
                found[name] = units if is_usual else variables.rendered(values[f"{role}_{SECTION}"])
        except Omitted:
            continue
        except AnsibleError as error:
            said, variable = str(error), f"{role}_{name}"
            if variable in said:
                raise
            raise AnsibleError(f"{variable} cannot be had: {said}") from None  # of a template Ansible names none
    return found


def is_plain(value: Any) -> bool:
    """Whether it is what it says: of the types of JSON, and with nothing that Ansible could take for a template."""
    if isinstance(value, str):
        return not any(start in value for start in TEMPLATE_STARTS) and not value.startswith("#jinja2:")
    if isinstance(value, dict):
        return all(map(is_plain, value.values())) and all(isinstance(key, str) for key in value)
    if isinstance(value, list):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float))


def _looks_literal(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(LITERAL_STARTS)
