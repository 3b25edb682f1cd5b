# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation of the section of devices says of its assignments."""

from __future__ import annotations


class ModuleDocFragment:
    """The assignments, each with its devices and its limits."""

    DOCUMENTATION = r"""
options:
  assignments:
    description:
      - What this host is to hold. V([]) releases all.
      - Without it, nothing that is held is looked at or touched, and O(acknowledge) alone is done.
      - One of O(assignments), O(acknowledge) and O(signed_spec) is required.
    type: list
    elements: dict
    suboptions:
      allocation_id:
        description: The hold's name, of at most 80 letters, digits and C(_). It can be there once.
        type: str
        required: true
      reservation_id:
        description: Written into the specification and the env file.
        type: str
      binding:
        description:
          - V(BINDING_HOLD) for a workload manager on this host, V(BINDING_KUBERNETES) for the kubelet's device plugins.
          - Any other is a failure of the assignment, V(unsupported-binding).
        type: str
        required: true
      devices:
        description:
          - What is held. RV(ignore:ansible_facts.bcd.gpus[].atoms) of M(bettercompute.bcd.host_info) has them.
          - No two holds have one device, or a part of it and the whole. A GPU in MIG mode has no slots, so on one GPU
            a MIG device and a slot exclude each other too.
        type: list
        elements: dict
        required: true
        suboptions:
          id:
            description: The UUID of a GPU, C(<gpu>/gi<g>/ci<c>) of a MIG device, or C(<gpu>/s<k>) of a slot.
            type: str
            required: true
          device_class:
            description:
              - V(gpu), which it is when it is not given, V(gpu.mig) or V(gpu.slot). Any other is a failure.
              - The id of a MIG device or a slot that is given as a V(gpu) is not present.
            type: str
      limits:
        description:
          - Host resources that are booked with the devices. A V(BINDING_HOLD) gets a slice with these limits.
          - Memory and huge pages are admitted first, against what the host has left for holds and virtual machines.
        type: dict
        suboptions:
          cpus:
            description: The CPUs, a cpulist.
            type: str
          mems:
            description: The NUMA nodes, a list as of CPUs.
            type: str
          cpu_millis:
            description: CPU time, in thousandths of one CPU.
            type: int
          memory_bytes:
            description: Memory, in bytes.
            type: int
          hugepages_2mi:
            description: Huge pages of 2 MiB.
            type: int
          hugepages_1gi:
            description: Huge pages of 1 GiB.
            type: int
      env:
        description:
          - More lines for the env file, C(KEY=VALUE) each. Keys that the file has anyway are refused.
          - Everyone on the host can read that file. Results and differences do not show the values.
        type: list
        elements: str
      instance_id:
        description: Accepted, and not read.
        type: str
"""
