#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_info
short_description: Say what a host is made of and what it waits for
version_added: 0.1.0
description:
  - Returns, as the fact C(bcd), the host's kernel, CPUs, NUMA nodes with their huge pages, IOMMU and boot loader, which
    units were applied to it, and why it waits for a reboot.
  - Changes nothing and needs no root. What the account cannot read is null, and named in C(unreadable).
options:
  max_disruption:
    description: Accepted, so that defaults for the action group C(all) fit; it means nothing here.
    type: str
    choices: [none, service, gpu]
    default: gpu
  signed_spec:
    description: Accepted, so that defaults for the action group C(all) fit; it means nothing here.
    type: dict
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  facts:
    description: Returns the fact C(bcd).
    support: full
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Look at the host
  bettercompute.bcd.host_info:

- name: Say what waits for a reboot
  ansible.builtin.debug:
    var: ansible_facts.bcd.reboot_reasons
  when: ansible_facts.bcd.reboot_required
"""

RETURN = r"""
ansible_facts:
  description: The fact C(bcd).
  returned: always
  type: dict
  contains:
    bcd:
      description: What the host shows. A key that could not be read is null.
      returned: always
      type: dict
      contains:
        kernel:
          description: The running kernel's release.
          returned: always
          type: str
          sample: 6.12.48+deb13-amd64
        boot_id:
          description: The running boot's id.
          returned: always
          type: str
        cpu:
          description:
            - C(count) of CPUs online; C(isolated) from the scheduler, as a cpulist; C(governors) in use, each with the
              number of its CPUs, empty where the kernel has no frequency scaling.
          returned: always
          type: dict
          sample: {"count": 64, "isolated": "4-63", "governors": {"performance": 64}}
        numa:
          description:
            - Each NUMA node's C(id), C(cpus) as a cpulist, C(memory) in bytes, and C(hugepages) by page size, each with
              C(total), C(free) and C(surplus) in pages.
          returned: always
          type: list
          elements: dict
          sample:
            - id: 0
              cpus: 0-31
              memory: 270049087488
              hugepages: {"2Mi": {"total": 512, "free": 512, "surplus": 0}}
        hugepages:
          description: The whole host's huge pages, as those of a node.
          returned: always
          type: dict
          sample: {"2Mi": {"total": 1024, "free": 1024, "surplus": 0}}
        iommu:
          description: Whether an IOMMU is C(enabled), the number of C(groups) of devices, and the IOMMUs' C(names).
          returned: always
          type: dict
          sample: {"enabled": true, "groups": 42, "names": ["dmar0"]}
        boot_loader:
          description:
            - What the machine really boots by, V(grub), V(grubby), V(systemd-boot), V(uki), V(ostree) or V(none).
          returned: always
          type: str
          sample: grub
        capabilities:
          description: What the host can do for reservations; empty without a GPU.
          returned: always
          type: list
          elements: str
        applied:
          description: The units that were applied to this host, by root's record.
          returned: always
          type: list
          elements: str
          sample: [hugepages, sysctl]
        reboot_required:
          description: Whether a unit waited for a reboot at the last pass in this boot.
          returned: always
          type: bool
        reboot_reasons:
          description: Why, by unit.
          returned: always
          type: dict
          sample: {"cpu": "cpu: CPUs 4-63 are isolated from the next boot (now: \"\"): reboot the node"}
        rebooted_for:
          description: By unit, why the host waited for a reboot that has happened, when no pass has looked since.
          returned: always
          type: dict
          sample: {}
        unreadable:
          description: A sentence on each key that could not be read.
          returned: always
          type: list
          elements: str
"""

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.info import run_info


def main() -> None:
    run_info(
        {
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
            "signed_spec": {"type": "dict"},
        }
    )


if __name__ == "__main__":
    main()
