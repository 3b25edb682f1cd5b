# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which texts of a file Ansible may take for templates: before ansible-core 2.19 all are but those that are marked.

From 2.19 on none is but those that are marked, so that both have to be said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

try:
    from ansible.template import trust_as_template

    SAYS_TRUST = True
except ImportError:  # before 2.19
    SAYS_TRUST = False

BEGINS = ("{{", "{%", "{#")
BRACE = re.compile(r"\{(?=[{%#])")
HEADER = re.compile(r"\A#(?=jinja2:)")  # would choose other braces


def as_template(text: str) -> str:
    """A text that is a template."""
    return str.__str__(text) if not SAYS_TRUST else trust_as_template(text)


def as_data(value: Any) -> Any:
    """A value in which nothing is a template."""
    if isinstance(value, Mapping):
        return {as_data(key): as_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(item) for item in value]
    if not isinstance(value, str):
        return value
    text = str.__str__(value)
    if not any(begin in text for begin in BEGINS):
        return as_template(text)  # none, and so an ordinary text to all that lists an inventory
    if SAYS_TRUST:
        return text
    from ansible.utils.unsafe_proxy import wrap_var

    return wrap_var(text)


def inert(value: Any) -> Any:
    """Plain values in which no ansible-core finds a template: every brace that would begin one stands by itself.

    For what a filter read out of `hostvars`: before 2.19 Ansible does not see by its arguments that hosts said it,
    takes what the filter makes of it for the playbook's own, and would evaluate it as soon as it is a fact.
    """
    if isinstance(value, Mapping):
        return {inert(key): inert(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [inert(item) for item in value]
    if not isinstance(value, str):
        return value
    return HEADER.sub("# ", BRACE.sub("{ ", str.__str__(value)))


def text_of(loader: Any, path: str) -> str:
    """The text of a file, deciphered where it is vaulted. Raises AnsibleError where it cannot be read."""
    content, _is_plain = loader._get_file_contents(path)
    return bytes(content).decode("utf-8", "replace")


def values_of(loader: Any, path: str) -> Any:
    """What a JSON or YAML file says, as variables, templates among them. Raises AnsibleError where it is neither."""
    given: dict[str, Any] = {"cache": "none", "trusted_as_template": True} if SAYS_TRUST else {"cache": False}
    return loader.load_from_file(path, **given)
