#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: hugepages
short_description: Keep pools of huge pages, on the host or on each NUMA node
version_added: 0.1.0
description:
  - Keeps persistent pools of 2 MiB and 1 GiB pages, and the policy of transparent huge pages.
  - Pages are taken from the running kernel first. 1 GiB pages for which it finds no memory in one piece are reserved by
    the boot loader from the next boot, which is reported as waiting for a reboot. Such a reservation is then kept in
    step with the count, and V(0) takes it back. Counts that differ between nodes are reserved node by node from Linux
    5.16 on; an older kernel spreads their sum evenly, and the rest is mended at runtime.
  - More pages than the host, or a node, has memory for are refused.
  - A shortfall of 2 MiB pages is tried again on each run; one of 1 GiB pages once in each boot.
  - With 1 GiB pages, mounts a hugetlbfs of them at C(/dev/hugepages1G) by the unit C(dev-hugepages1G.mount), or by
    hand where systemd does not run. Without any, that mount ends once none of its pages is in use.
  - Installs C(bcd-hugepages.service), which sets the pools again early in each boot with the shell alone, before
    anything that could take the memory. It sets the policy too, since a boot argument would take effect only after a
    reboot.
  - Pages that something uses are never taken away. A pool that is to shrink below them shrinks when they are given
    back.
options:
  pages_2m:
    description:
      - How many pages of 2 MiB to keep. V(0) keeps none; without it they are not managed.
      - One number is for the whole host, or for each NUMA node with O(per_numa). Several are one for each NUMA node.
      - NUMA nodes are those that have both memory and CPUs, in the order of their numbers.
    type: list
    elements: int
  pages_1g:
    description: How many pages of 1 GiB to keep, as with O(pages_2m).
    type: list
    elements: int
  per_numa:
    description: Whether a single count is kept on every NUMA node.
    type: bool
  transparent:
    description: The policy of transparent huge pages. Without it the policy is not managed.
    type: str
    choices: [always, madvise, never]
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Memory for virtual machines, spread evenly over the NUMA nodes
  bettercompute.bcd.hugepages:
    pages_1g: 96
    per_numa: true
    transparent: madvise

- name: More of it beside the first node's devices, and small pages host-wide
  bettercompute.bcd.hugepages:
    pages_1g: [160, 96]
    pages_2m: 2048

- name: Give all pages back, with the boot reservation and the mount
  bettercompute.bcd.hugepages:
    pages_1g: 0
    pages_2m: 0

- name: No longer our concern; pools, boot arguments, mount and service stay
  bettercompute.bcd.hugepages:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: hugepages
state:
  description: V(converged), V(progressing) while it waits or a retry may help, or V(failed).
  returned: always
  type: str
  sample: converged
pending:
  description: What the unit waits for, each a V(reason) (RebootRequired, Busy, NotReady, HeldBack) and a V(message).
  returned: always
  type: list
  elements: dict
reboot_required:
  description: Whether one of RV(pending) is RebootRequired.
  returned: always
  type: bool
conditions:
  description: Faults that others act on, each a V(type), V(status), V(reason) and V(message).
  returned: always
  type: list
  elements: dict
steps:
  description: What was done, or would be, in order; each an V(action), its V(disruption), and whether it is V(done).
  returned: always
  type: list
  elements: dict
notes:
  description: Sentences that never change RV(state), such as what a removal leaves.
  returned: always
  type: list
  elements: str
reason:
  description: V(Refused) when nothing was written and a retry cannot help, or V(StepFailed).
  returned: failure
  type: str
retryable:
  description: Whether another run may help.
  returned: failure
  type: bool
"""

from typing import Any

OPTIONS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "pages_2m": {"type": "list", "elements": "int"},
    "pages_1g": {"type": "list", "elements": "int"},
    "per_numa": {"type": "bool"},
    "transparent": {"type": "str", "choices": ["always", "madvise", "never"]},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.hugepages import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
