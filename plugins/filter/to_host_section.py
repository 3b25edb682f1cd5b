# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter to_host_section."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: to_host_section
short_description: Units as the host section travels
version_added: 0.1.0
description:
  - Makes the list of units that a control plane sends, sorted by name, the settings of each as canonical JSON. Equal
    sections are equal bytes.
  - It does not judge the settings, which a host does, and P(bettercompute.bcd.host_units#filter).
options:
  _input:
    description: Settings in wire form by unit.
    type: dict
    required: true
seealso:
  - module: bettercompute.bcd.host_section
  - plugin: bettercompute.bcd.from_host_section
    plugin_type: filter
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Write the section of each host
  ansible.builtin.copy:
    dest: "sections/{{ inventory_hostname }}.json"
    content: "{{ bcd_converge_units | bettercompute.bcd.to_host_section | to_json }}"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description: The section, for the option C(wire_units) of M(bettercompute.bcd.host_section).
  type: list
  elements: dict
  contains:
    unit:
      description: The unit's name.
      type: str
    settings:
      description: Its settings, as canonical JSON.
      type: str
"""


def to_host_section(units: Any) -> list[dict[str, str]]:
    """The section in wire form."""
    from ..plugin_utils.wire_section import to_section

    try:
        return to_section(units)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault


class FilterModule:
    """The filter to_host_section."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"to_host_section": to_host_section}
