# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter awx_problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: awx_problem
short_description: Why AWX did not do what it was asked
version_added: 0.1.0
description:
  - Says what AWX answered, of which object, and the next move.
positional: what
options:
  _input:
    description: The registered result of M(ansible.builtin.uri), of a loop too.
    type: dict
    required: true
  what:
    description: What it was to do, as words after C(cannot). An item of a loop with C(says) is called that instead.
    type: str
    default: do it
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Stop where AWX refuses the project
  ansible.builtin.assert:
    that: problem == ''
    fail_msg: "{{ problem }}"
  vars:
    problem: "{{ answer | bettercompute.bcd.awx_problem('create the project') }}"
"""

RETURN = r"""
_value:
  description: One sentence, or an empty string.
  type: str
"""


def awx_problem(answer: Any, what: str = "do it") -> str:
    """Why the call failed, or ""."""
    from ..plugin_utils.awx_answer import problem

    if not isinstance(answer, Mapping):
        raise AnsibleFilterError(f"awx_problem takes the result of ansible.builtin.uri, not {answer!r}")
    return problem(answer, what)


class FilterModule:
    """The filter awx_problem."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"awx_problem": awx_problem}
