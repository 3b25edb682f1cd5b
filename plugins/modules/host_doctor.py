#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_doctor
short_description: Find what is wrong on a host, or can go wrong
version_added: 0.1.0
description:
  - Looks at a host as a careful operator would, and returns what it finds, each with the next move. It looks at root's
    configuration, who may have root do what and whether anything is signed, the helper and the agent, root's records
    and files, GPUs with their driver, CDI specifications and holds, the cluster, disks, clock and pending reboots.
  - Changes nothing. Without root, and without a helper that is root for it, one finding names what was not seen.
options:
  fail_on:
    description:
      - What makes the task fail, with all that was found. V(failure) is a failure, V(warning) also a warning, and
        V(never) leaves it to who reads the result.
    type: str
    choices: [failure, warning, never]
    default: failure
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
  - module: bettercompute.bcd.host_status
"""

EXAMPLES = r"""
- name: Fail where something is wrong
  bettercompute.bcd.host_doctor:

- name: Only say what is
  bettercompute.bcd.host_doctor:
    fail_on: never
  register: doctor

- name: Show it
  ansible.builtin.debug:
    msg: "{{ doctor.report }}"
"""

RETURN = r"""
state:
  description: The worst level that was found, V(ok), V(warning) or V(failure).
  returned: always
  type: str
  sample: warning
findings:
  description:
    - What was found, the worst first, then by check and message. A check that has nothing to do with the host has none.
  returned: always
  type: list
  elements: dict
  contains:
    check:
      description:
        - The check's name.
        - Who may have root do what is V(config), V(signed-intent), V(node-binding), V(cryptography), V(helper),
          V(agent), V(program), V(gpu-binding) and V(allowed-clusters).
        - The host and what root keeps there is V(records), V(debts), V(reboot), V(root-directories), V(secrets),
          V(disk), V(lock), V(clock), V(boot-services), V(kubelet-certificate) and V(swap).
        - GPUs are V(iommu), V(gpus), V(secure-boot), V(vendor-cdi), V(holds), V(releases) and V(events).
        - V(account) names the checks that this account could not make.
      type: str
      sample: iommu
    level:
      description: V(ok), V(warning) or V(failure).
      type: str
      sample: warning
    message:
      description: The thing, its value, and the next move.
      type: str
      sample: >-
        an IOMMU is on, and no vfio-pci driver is loaded, so that no device can be passed through: load vfio-pci by the
        unit kernel-modules
report:
  description: The same for a person, as lines of at most a hundred columns.
  returned: always
  type: list
  elements: str
"""

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.doctor import run_doctor


def main() -> None:
    run_doctor(
        {
            "fail_on": {"type": "str", "choices": ["failure", "warning", "never"], "default": "failure"},
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
            "signed_spec": {"type": "dict"},
        }
    )


if __name__ == "__main__":
    main()
