# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter reboot_elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

DOCUMENTATION = r"""
name: reboot_elsewhere
short_description: The hosts that share a pool with those that are to be rebooted
version_added: 0.1.0
description:
  - Picks the hosts that a run may not touch, since O(ignore:--limit) or C(bcd_hosts) leaves them out, and that count
    all the same when it is asked how many hosts of a pool are unavailable.
  - Only pools with a host that waits for a reboot, by its variable C(bcd_before), are looked through.
positional: variables, everyone, named
options:
  _input:
    description: The hosts of the run.
    type: list
    elements: str
    required: true
  variables:
    description: The variables of all hosts, by name.
    type: dict
    required: true
  everyone:
    description: All hosts of the inventory.
    type: list
    elements: str
    required: true
  named:
    description: The hosts that the hosts without a pool are counted among.
    type: list
    elements: str
    required: true
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say which hosts of the pools are not in this run
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | bettercompute.bcd.reboot_elsewhere(hostvars, groups.all, groups.all) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: Names of hosts.
  type: list
  elements: str
"""


def reboot_elsewhere(
    reach: Iterable[str], variables: Mapping[str, Any], everyone: Iterable[str], named: Iterable[str]
) -> list[str]:
    """The other hosts of the pools (see plugin_utils.reboot_seen)."""
    from ..plugin_utils.reboot_seen import elsewhere

    return elsewhere(list(reach), everyone, named, variables)


class FilterModule:
    """The filter reboot_elsewhere."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"reboot_elsewhere": reboot_elsewhere}
