# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter reboot_plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

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
  drain:
    description: Whether they are drained, which keeps such a host up too.
    type: bool
    default: false
  dry_run:
    description: Whether the run is to say only what it would do.
    type: bool
    default: false
  asked:
    description:
      - The host whose variables gave O(max_unavailable), O(again), O(with_holds), O(cordon), O(drain) and O(dry_run).
      - Where they are its own, each other host has its own too, by C(bcd_reboot_max_unavailable) and so on in
        O(variables). Otherwise, and where it is empty, they hold for all hosts.
    type: str
    default: ""
  lost:
    description: Hosts of the run that an earlier play lost, so that they were not looked at.
    type: list
    elements: str
    default: []
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
    dry:
      description: Whether a host of the run has it that nothing is to be done.
      type: bool
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
    drain: bool = False,
    dry_run: bool = False,
    asked: str = "",
    lost: Iterable[str] = (),
) -> dict[str, Any]:
    """The plan (see plugin_utils.reboot_waves), with its `lines`, and whether it is `dry`."""
    from ..plugin_utils.reboot_said import lines
    from ..plugin_utils.reboot_seen import seen
    from ..plugin_utils.reboot_waves import plan_waves
    from ..plugin_utils.reboot_wishes import wishes_of
    from ..plugin_utils.template_trust import inert

    given = {
        "max_unavailable": max_unavailable,
        "again": again,
        "with_holds": with_holds,
        "cordon": cordon,
        "drain": drain,
        "dry_run": dry_run,
    }
    looks = {str(look["item"]): look for look in elsewhere or ()}
    hosts = [str(host) for host in reach]
    try:
        wishes = wishes_of([*hosts, *looks], variables, given, asked)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault
    plan = plan_waves(seen(hosts, looks, variables, wishes, lost))
    is_dry = any(wishes[host].dry_run for host in hosts)
    made: dict[str, Any] = inert({**plan, "lines": lines(plan, variables), "dry": is_dry})
    return made


class FilterModule:
    """The filter reboot_plan."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"reboot_plan": reboot_plan}
