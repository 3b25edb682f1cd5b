#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_plan
short_description: Say what a whole host lacks to its section
version_added: 0.1.0
description:
  - Plans every unit of a host's section in one process, in a fixed order, each against the host as those before it will
    leave it, and changes nothing.
  - Needs no root. What only root can see is reported as known after it is seen as root.
  - It is RV(ignore:changed) in check mode only, when a run would change something, since Ansible shows differences only
    then.
extends_documentation_fragment:
  - bettercompute.bcd.section
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: What is not as it should be
  bettercompute.bcd.host_plan:
    units: "{{ bcd_converge_units }}"
    fail_on: never
  register: plan

- name: The same with its differences shown
  bettercompute.bcd.host_plan:
    units: "{{ bcd_converge_units }}"
  check_mode: true
  diff: true
"""

RETURN = r"""
units:
  description:
    - Every unit's result in the fixed order, with the keys that the units' own modules return.
    - RV(ignore:msg), RV(ignore:reason) and RV(ignore:retryable) say why one failed.
  returned: always
  type: list
  elements: dict
  sample:
    - unit: sysctl
      changed: true
      state: progressing
      pending:
        - reason: NotReady
          message: >-
            sysctl: this kernel has no net.bridge.bridge-nf-call-iptables (is the module that provides it loaded?)
      reboot_required: false
      conditions: []
      steps:
        - action: write /etc/sysctl.d/90-bcd.conf
          disruption: none
          done: true
      notes: []
      diff: []
unconverged:
  description: The units that are not converged.
  returned: always
  type: list
  elements: str
  sample: [sysctl]
todo:
  description: The units that have steps left to take.
  returned: always
  type: list
  elements: str
secrets_needed:
  description:
    - References of the secrets that a run will take and that O(secrets) does not have, such as the token of a join.
      Units that O(only) leaves out count for nothing here.
  returned: always
  type: list
  elements: str
agent:
  description:
    - What C(bcd agent), which the role C(bcd_agent) installs, did here when no controller was there.
    - It is there while its last pass did not end well, or it has repaired what no run has told yet. This
      module leaves it to the next run of M(bettercompute.bcd.host_section).
  returned: when there is something to tell
  type: dict
  contains:
    last:
      description:
        - How its last pass ended. C(at) is the unix time at which it came to be so, and C(boot_id) the boot. C(host)
          and C(devices) have a C(state) and a C(message) each, or are null where that is not kept.
      type: dict
    repairs:
      description: What was repaired since, each with C(at), its C(unit) (C(devices) of holds) and its C(action).
      type: list
      elements: dict
      sample:
        - at: 1760000000
          unit: sysctl
          action: set vm.swappiness to 10
reboot_required:
  description: Whether a unit waits for a reboot.
  returned: always
  type: bool
section:
  description: What the units' results add up to.
  returned: always
  type: dict
  contains:
    state:
      description:
        - V(CONVERGED) when every unit is, V(FAILED) when all that is wrong is terminal, else V(PROGRESSING).
      type: str
      sample: PROGRESSING
    message:
      description: What every unit that is not converged says, each beginning with its name.
      type: str
    observed_generation:
      description: The last O(generation) that ended V(CONVERGED) or V(FAILED).
      type: int
    conditions:
      description:
        - The units' conditions, each a V(type), V(status), V(reason) and V(message).
        - While a unit waits for a reboot one of them is V(RebootRequired), its reason the names of those that wait.
      type: list
      elements: dict
ansible_facts:
  description: The result itself.
  returned: success
  type: dict
  contains:
    bcd_converge_status:
      description: All the keys above.
      type: dict
ansible_stats:
  description: For the run's statistics, C(bcd_converge_reboot_required), from host to unit to what it says.
  returned: success
  type: dict
"""

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.section import run_section

OPTIONS: dict[str, Any] = {
    "units": {"type": "dict"},
    "wire_units": {
        "type": "list",
        "elements": "dict",
        "options": {
            "unit": {"type": "str", "required": True},
            "settings": {"type": "raw", "required": True},
        },
    },
    "known": {"type": "list", "elements": "str"},
    "generation": {"type": "int"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
    "secrets": {"type": "dict", "no_log": True},
    "node_id": {"type": "str"},
    "site": {"type": "str"},
    "only": {"type": "list", "elements": "str"},
    "fail_on": {
        "type": "str",
        "choices": ["terminal", "failed", "progressing", "never"],
        "default": "failed",
    },
    "fail_on_secrets": {"type": "bool", "default": False, "no_log": False},
    "label": {"type": "str"},
}
RULES: dict[str, Any] = {
    "mutually_exclusive": [["units", "wire_units"]],
    "required_one_of": [["units", "wire_units", "signed_spec"]],
}


def main() -> None:
    run_section(OPTIONS, RULES, plans=True)


if __name__ == "__main__":
    main()
