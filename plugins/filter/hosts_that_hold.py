# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter hosts_that_hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

DOCUMENTATION = r"""
name: hosts_that_hold
short_description: Which hosts are given devices to hold
version_added: 0.1.0
description:
  - Picks the hosts for which the role C(bcd_devices) has something to do, by C(bcd_devices_assignments), or by what
    C(bcd_devices_signed_spec) or C(bcd_converge_signed_spec) has signed for them.
  - Of their variables only these are looked at, and one whose lookup fails says nothing.
positional: variables
options:
  _input:
    description: Names of hosts.
    type: list
    elements: str
    required: true
  variables:
    description: The variables of all hosts, by name.
    type: dict
    required: true
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say which hosts hold devices
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts | bettercompute.bcd.hosts_that_hold(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: Those of the names.
  type: list
  elements: str
"""


def hosts_that_hold(hosts: Iterable[str], variables: Any) -> list[str]:
    """Those of the hosts for which the role bcd_devices has something to do."""
    from ..plugin_utils.signed import holders

    return holders(hosts, variables)


class FilterModule:
    """The filter hosts_that_hold."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"hosts_that_hold": hosts_that_hold}
