# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter fleet_report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: fleet_report
short_description: One document of what every host's plan found, or of how every host is
version_added: 0.1.0
description:
  - Puts the results of M(bettercompute.bcd.host_plan) of many hosts into one document, the drift report; or those of
    M(bettercompute.bcd.host_status), in the same shape.
  - It holds no time of its own, so that two reports of the same fleet are equal.
  - M(bettercompute.bcd.save_report) makes and writes it in one task. C(docs/fleet-report.schema.json) of the collection
    is its JSON schema.
options:
  _input:
    description: Registered results by host name; an empty mapping for a host that has none.
    type: dict
    required: true
  devices:
    description: Registered results of M(bettercompute.bcd.cdi_holds) by host name, of those that have assignments.
    type: dict
  facts:
    description: Beside plans, registered results of M(bettercompute.bcd.host_info) by host name.
    type: dict
  places:
    description: By host name where it belongs, with C(pool), C(site) and C(class).
    type: dict
  waits:
    description: Beside plans, by host name a sentence on the MIG layout of its pool that it waits for.
    type: dict
  source:
    description: V(plan) for results of M(bettercompute.bcd.host_plan), V(status) for M(bettercompute.bcd.host_status).
    type: str
    default: plan
    choices: [plan, status]
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Show which hosts have drifted
  ansible.builtin.debug:
    msg: "{{ (document.hosts | dict2items | selectattr('value.drift') | map(attribute='key')) }}"
  vars:
    results: "{{ ansible_play_hosts_all | map('extract', hostvars) | map(attribute='plan', default={}) }}"
    document: "{{ dict(ansible_play_hosts_all | zip(results)) | bettercompute.bcd.fleet_report }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The document.
  type: dict
  contains:
    kind:
      description: V(FleetReport).
      type: str
    version:
      description: The version of the document's shape, which only grows within a version.
      type: int
    source:
      description: V(plan) or V(status).
      type: str
    summary:
      description:
        - Counts of hosts, RV(ignore:hosts) of all, the others by state; and RV(ignore:pools), the same of each pool.
        - RV(ignore:drifted) counts those with steps to take, and RV(ignore:failing) those with a unit that failed,
          whatever their state.
        - RV(ignore:reboot_required) counts those with nothing left to do but the reboot, RV(ignore:reboot_later) those
          that will wait for one once their steps are taken.
      type: dict
    hosts:
      description:
        - By host name its RV(ignore:state) (V(converged), V(progressing), V(failed), V(unreachable), or V(unknown)
          where the plan itself failed), its RV(ignore:message), and the units in RV(ignore:drift),
          RV(ignore:failing) and RV(ignore:unconverged).
        - Also RV(ignore:reboot_required), RV(ignore:observed_generation), the section's RV(ignore:conditions), and in
          RV(ignore:units) each unit's result, as its module returns it.
        - Where it has assignments, RV(ignore:devices) is what its section of devices would do, and who holds what.
        - Where it belongs, RV(ignore:pool), RV(ignore:site) and RV(ignore:class). What it shows, RV(ignore:reboot),
          RV(ignore:gpus), RV(ignore:holds), RV(ignore:numa), RV(ignore:kernel) and RV(ignore:driver), as
          M(bettercompute.bcd.host_status) returns them, and what of these is RV(ignore:unreadable).
        - In a status RV(ignore:kept), RV(ignore:trust) and RV(ignore:agent) too. What is not known is null.
      type: dict
"""


def fleet_report(
    results: Any, devices: Any = None, facts: Any = None, places: Any = None, waits: Any = None, source: str = "plan"
) -> dict[str, Any]:
    """The fleet document of registered results by host name."""
    from ..plugin_utils.report import PLAN, STATUS, fleet_document

    for given in (results, *(each for each in (devices, facts, places, waits) if each is not None)):
        if not isinstance(given, Mapping):
            kind = type(given).__name__
            raise AnsibleFilterError(f"fleet_report takes mappings of host names to results, not {kind}")
    if source not in (PLAN, STATUS):
        raise AnsibleFilterError(f"fleet_report takes {PLAN} or {STATUS} as its source, not {source!r}")
    return fleet_document(results, devices, facts, places, source, waits)


class FilterModule:
    """The filter fleet_report."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"fleet_report": fleet_report}
