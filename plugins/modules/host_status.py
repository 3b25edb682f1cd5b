#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_status
short_description: Say how a host is
version_added: 0.1.0
description:
  - Returns how a host stands to what it was last asked to be, as it is now. Of each unit its state and what it waits
    for, of each GPU who has it and its parts, its holds, what it takes signatures from, and what its agent repaired.
  - What it was asked is root's own copy. That is the last signed spec where one is demanded, else what was applied.
  - Changes nothing. Without root, and without a helper that is root for it, what only root sees is null, and named in
    RV(unreadable).
extends_documentation_fragment: bettercompute.bcd.everywhere
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
author:
  - bettercompute (@bettercompute)
seealso:
  - module: bettercompute.bcd.host_doctor
  - module: bettercompute.bcd.host_info
"""

EXAMPLES = r"""
- name: Look at the host
  bettercompute.bcd.host_status:
  register: status

- name: Say who has which slot
  ansible.builtin.debug:
    msg: "{{ status.gpus | map(attribute='slots') | flatten }}"
"""

RETURN = r"""
state:
  description:
    - The worse of the two sections' states, V(converged), V(progressing) or V(failed); V(converged) where nothing is
      kept, and V(unknown) where it is not seen.
  returned: always
  type: str
  sample: progressing
kept:
  description: Where what the host is to be comes from, or why nothing is kept.
  returned: always
  type: str
  sample: what this host was last asked
hostname:
  description: The host's name, as its kernel has it.
  returned: always
  type: str
  sample: gpu-01
version:
  description: The version of the collection, or of the program, that looked.
  returned: always
  type: str
  sample: 0.1.0
root:
  description: Whether root looked.
  returned: always
  type: bool
units:
  description:
    - Each unit that is kept, in the fixed order, with its C(unit), C(state), C(pending), C(conditions), C(steps) that a
      pass would take, and C(notes); C(msg), C(reason) and C(retryable) say why one fails.
  returned: always
  type: list
  elements: dict
  sample:
    - unit: cpu
      state: progressing
      pending:
        - reason: RebootRequired
          message: 'cpu: CPUs 4-63 are isolated from the next boot (now: ""): reboot the node'
      conditions: []
      steps: []
      notes: []
section:
  description: What the units add up to, as M(bettercompute.bcd.host_plan) returns it; null where none is kept.
  returned: always
  type: dict
devices:
  description:
    - The section of devices, with C(state), C(message), C(observed_generation), C(conditions), C(failures) and the
      allocations that are C(releasing), as M(bettercompute.bcd.cdi_holds) returns them; null where none is kept.
    - Also what a pass would make of them, C(bound), C(kept), C(released), C(holds), C(steps), C(pending) and C(notes),
      and where it would fail C(reason), C(retryable) and C(msg).
  returned: always
  type: dict
reboot:
  description: Whether a reboot was C(required) at the last pass of this boot, and the C(reasons) by unit.
  returned: always
  type: dict
  sample: {"required": false, "reasons": {}}
gpus:
  description:
    - The GPUs as M(bettercompute.bcd.host_info) has them, with C(index), C(uuid), C(pci), C(name), C(mig_mode),
      C(layout), C(slices), C(sharing), C(allocations), C(processes) and C(holders).
    - Each of C(mig_devices) has also the C(allocation_id) that has it, null of one that is free. C(slots) has the slots
      that are held, each its number as C(slot) with its C(allocation_id).
  returned: always
  type: list
  elements: dict
holds:
  description: The allocations that have GPUs of this host, as M(bettercompute.bcd.host_info) has them.
  returned: always
  type: list
  elements: dict
numa:
  description: The NUMA nodes with their huge pages, as M(bettercompute.bcd.host_info) has them.
  returned: always
  type: list
  elements: dict
  sample:
    - id: 0
      cpus: 0-31
      memory: 270049087488
      hugepages: {"2Mi": {"total": 512, "free": 512, "surplus": 0}}
kernel:
  description: The running kernel's release.
  returned: always
  type: str
  sample: 6.12.48+deb13-amd64
driver:
  description: The full version of NVIDIA's driver that is loaded; null where none is.
  returned: always
  type: str
  sample: 580.95.05
trust:
  description:
    - Whether everything has to be C(signed), and what demands it, a sentence in C(demand). C(pins) counts the
      C(command_roots) that root pins, and says whether it pins a C(join_key).
    - The C(node_id) that specs must name, with its C(binding), V(join record) or V(first accepted spec). The
      C(generation) of the last accepted spec, and the version of the newest C(trust_bundle). C(fault) says what is
      wrong with any of it.
  returned: always
  type: dict
  sample:
    signed: true
    demand: command_root_sha256 in root's config.toml demands a signed spec
    pins: {"command_roots": 1, "join_key": false}
    node_id: node-1
    binding: join record
    generation: 7
    trust_bundle: null
    fault: null
agent:
  description:
    - What the agent remembers. C(last) is how its last pass ended, for C(host) and C(devices) a C(state) and a
      C(message), null before the first. C(repairs) are its newest repairs, each with C(at), C(unit) and C(action).
      C(fault) says why its record cannot be read.
  returned: always
  type: dict
unreadable:
  description: A sentence on each part that could not be read.
  returned: always
  type: list
  elements: str
report:
  description: The same for a person, as lines of about a hundred columns.
  returned: always
  type: list
  elements: str
"""

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.status import run_status


def main() -> None:
    run_status(
        {
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
            "signed_spec": {"type": "dict"},
        }
    )


if __name__ == "__main__":
    main()
