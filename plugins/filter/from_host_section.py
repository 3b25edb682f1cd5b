# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter from_host_section."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: from_host_section
short_description: The units of a host section as it travels
version_added: 0.1.0
description:
  - Reads the list of units that a control plane sends, as strictly as a host does. A unit that is named twice, a key
    that is twice in its settings, and anything behind them are refused, all at once, a line each with its path.
options:
  _input:
    description: The section, a list of C(unit) and C(settings), the text of a JSON object.
    type: list
    elements: dict
    required: true
seealso:
  - module: bettercompute.bcd.host_section
  - plugin: bettercompute.bcd.to_host_section
    plugin_type: filter
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say which sysctls a section sets
  ansible.builtin.debug:
    msg: "{{ (section | bettercompute.bcd.from_host_section).sysctl }}"
  vars:
    section:
      - unit: sysctl
        settings: '{"vm.swappiness":10}'
"""

RETURN = r"""
_value:
  description: Settings in wire form by unit, sorted by name.
  type: dict
"""


def from_host_section(section: Any) -> dict[str, dict[str, Any]]:
    """The mapping of the section."""
    from ..plugin_utils.wire_section import from_section

    try:
        return from_section(section)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault


class FilterModule:
    """The filter from_host_section."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"from_host_section": from_host_section}
