# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter awx_step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: awx_step
short_description: What objects that AWX is to have ask of AWX's API
version_added: 0.1.0
description:
  - The playbook C(bettercompute.bcd.awx_setup) looks for the objects of each level of its table with it, and sends what
    differs.
positional: ids, looked, made, surveys
options:
  _input:
    description:
      - The declared objects, each with C(id), C(kind) and C(find) (C(names) for several, C(of) for an approval), and as
        its kind has them C(fields), C(exists), C(declared), C(survey), C(credentials) and C(edges).
    type: list
    elements: dict
    required: true
  ids:
    description: The numbers that AWX gave the objects before them, by C(id); 0 for one that a check would make.
    type: dict
    required: true
  looked:
    description: The registered result of the loop over C(looks).
    type: dict
  made:
    description: The registered result of the loop over C(creations).
    type: dict
  surveys:
    description: The registered result of the loop over C(surveys).
    type: dict
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say where a project is looked for
  ansible.builtin.debug:
    msg: "{{ (projects | bettercompute.bcd.awx_step(ids)).looks }}"
  vars:
    ids:
      organization: 1
    projects:
      - id: project
        kind: projects
        find:
          name: bcd
          organization: "@organization"
"""

RETURN = r"""
_value:
  description:
    - The calls to make, each with C(id), C(path) below the root of the API, C(body) and C(says). C(looks) at first;
      with what they found C(creations), C(surveys), which are looks too, and C(calls); then C(says), what was made
      and is to be sent, and C(numbers), for the objects after them.
  type: dict
"""


def awx_step(level: Any, ids: Any, looked: Any = None, made: Any = None, surveys: Any = None) -> dict[str, Any]:
    """What the objects of a level ask of the API."""
    from ..plugin_utils.awx import level_step

    try:
        return level_step(level, ids, looked, made, surveys)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault


class FilterModule:
    """The filter awx_step."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"awx_step": awx_step}
