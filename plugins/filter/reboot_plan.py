# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter reboot_plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.reboot_budget import limit
from ..plugin_utils.reboot_said import lines
from ..plugin_utils.reboot_seen import Wishes, seen
from ..plugin_utils.reboot_waves import plan_waves

DOCUMENTATION = r"""
name: reboot_plan
short_description: The waves of a rolling reboot
version_added: 0.1.0
description:
  - Plans which hosts are rebooted together, so that no pool has more of its hosts unavailable than it may, and spreads
    each pool's order over its sites.
  - A host's pool is its variable C(bcd_pool), its site C(bcd_site). Hosts without a pool are one of their own.
  - What a host waits for is its variable C(bcd_before), the registered result of M(bettercompute.bcd.host_info) with
    O(bettercompute.bcd.host_info#module:availability).
positional: variables
options:
  _input:
    description: The hosts that may be rebooted.
    type: list
    elements: str
    required: true
  variables:
    description: The variables of all hosts, by name.
    type: dict
    required: true
  elsewhere:
    description: The results of a loop over the other hosts of the pools, which are counted and not rebooted.
    type: list
    elements: dict
  max_unavailable:
    description:
      - How many hosts of a pool may be unavailable at a time, a number or a percentage of the whole pool, rounded down
        and at least one.
    type: raw
    default: 1
  again:
    description: Whether a host is rebooted again where the last reboot was in vain.
    type: bool
    default: false
  with_holds:
    description: Whether a host is rebooted while allocations hold its devices.
    type: bool
    default: false
  cordon:
    description: Whether the Nodes of workers are cordoned, so that one that cannot be asked for keeps its host up.
    type: bool
    default: true
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say how many waves the hosts would take
  ansible.builtin.debug:
    msg: "{{ (ansible_play_hosts_all | bettercompute.bcd.reboot_plan(hostvars, max_unavailable='10%')).sizes }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    waves:
      description:
        - The hosts of each wave, in order. RV(ignore:queue) has them in one list, RV(ignore:sizes) their numbers.
      type: list
      elements: list
    turns:
      description: V(reboot), V(prove) or V(release) by host.
      type: dict
    pools:
      description: By pool its RV(ignore:size), RV(ignore:allowed), RV(ignore:room) and RV(ignore:unavailable) hosts.
      type: dict
    left_out:
      description: Why, by host that waits for a reboot and is not rebooted.
      type: dict
    failed:
      description: What is wrong, by host.
      type: dict
    lines:
      description: The plan in sentences.
      type: list
      elements: str
"""


def reboot_plan(
    reach: Iterable[str],
    variables: Mapping[str, Any],
    elsewhere: Iterable[Mapping[str, Any]] | None = None,
    max_unavailable: Any = 1,
    again: bool = False,
    with_holds: bool = False,
    cordon: bool = True,
) -> dict[str, Any]:
    """The plan (see plugin_utils.reboot_waves), with its `lines`."""
    try:
        most = limit(max_unavailable)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault
    looks = {str(look["item"]): look for look in elsewhere or ()}
    hosts = seen([str(host) for host in reach], looks, variables, Wishes(again, with_holds, cordon))
    plan = plan_waves(hosts, most)
    return {**plan, "lines": lines(plan, variables)}


class FilterModule:
    """The filter reboot_plan."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"reboot_plan": reboot_plan}
