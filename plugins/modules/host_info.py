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
  - Returns, as the fact C(bcd), the host's kernel, CPUs, NUMA nodes with their huge pages, IOMMU and boot loader, its
    NVIDIA driver and GPUs with their layouts and who uses them, its kubelet and cluster, which units were applied to
    it, and why it waits for a reboot.
  - Changes nothing and needs no root. What the account cannot read is null, and named in C(unreadable).
  - Without root, programs that other accounts run on a GPU, and pending releases of GPUs, are among that.
options:
  availability:
    description:
      - Whether to look too whether others can count on the host now, RV(ansible_facts.bcd.going_down) and
        RV(ansible_facts.bcd.node). A worker's API server is asked for its Node, with the kubelet's credentials, which
        takes root.
    type: bool
    default: false
extends_documentation_fragment: bettercompute.bcd.everywhere
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

- name: Say which GPUs nobody uses
  ansible.builtin.debug:
    msg: "{{ ansible_facts.bcd.gpus | default([], true) | selectattr('processes', 'eq', []) | map(attribute='uuid') }}"

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
        driver:
          description:
            - NVIDIA's driver. The full versions that are C(loaded) into the kernel and of the C(library) on disk, and
              the loaded one's C(flavour), V(open) or V(proprietary). Each is null where there is none.
          returned: always
          type: dict
          sample: {"loaded": "580.95.05", "library": "580.95.05", "flavour": "open"}
        fabric:
          description:
            - The NVLink fabric, empty where the host is in none. C(switches) is the number of NVSwitches that this
              host's driver has, C(gpus) by UUID the C(state) and C(status) that each GPU tells; V(Completed) and
              V(Success) have joined. GPUs before Hopper tell nothing.
          returned: always
          type: dict
          sample:
            switches: 4
            gpus: {"GPU-5f1c2a90-0000-4000-8000-000000000001": {"state": "Completed", "status": "Success"}}
        gpus:
          description:
            - The GPUs that the driver runs, by index; null where GPUs wait for a driver, or nvidia-smi does not answer.
            - Of a GPU that does not answer, or of what this account cannot see, keys are null.
          returned: always
          type: list
          elements: dict
          contains:
            index:
              description: Its place by PCI address, which changes when a GPU comes or goes; null of one that is lost.
              type: int
              sample: 0
            uuid:
              description: Its UUID; the PCI address of one that is lost, where nothing tells it.
              type: str
              sample: GPU-5f1c2a90-0000-4000-8000-000000000001
            pci:
              description: Its PCI address, as nvidia-smi prints it.
              type: str
              sample: "00000000:17:00.0"
            name:
              description: The product's name.
              type: str
              sample: NVIDIA H100 80GB HBM3
            mig_mode:
              description: V(enabled) or V(disabled), null where the GPU has no MIG.
              type: str
              sample: enabled
            layout:
              description:
                - Its MIG layout as the module M(bettercompute.bcd.mig_layout) takes it, null where the GPU has no MIG.
              type: str
              sample: 3g.40gb,1g.10gb:4
            mig_devices:
              description:
                - Its MIG devices, each with C(uuid), C(profile), the ids C(gi) and C(ci) of its GPU and compute
                  instance, and the GPU instance's C(start) and C(size) in the units of the GPU's memory.
              type: list
              elements: dict
              sample:
                - uuid: MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054
                  profile: 3g.40gb
                  gi: 2
                  ci: 0
                  start: 4
                  size: 4
            slices:
              description:
                - The units of memory that the whole GPU has, in which C(start) and C(size) count; null while MIG mode
                  is off.
              type: int
              sample: 8
            sharing:
              description:
                - How its clients share it, by M(bettercompute.bcd.gpu_sharing), with C(mode) and the number of
                  C(replicas); null where nothing was set up. Without root time slices are not seen.
              type: dict
              sample: {"mode": "mps", "replicas": 10}
            atoms:
              description:
                - What can be held of it, each with the C(id) and C(device_class) of an assignment. It is the whole GPU,
                  or its MIG devices while MIG mode is on.
              type: list
              elements: dict
              sample:
                - id: GPU-5f1c2a90-0000-4000-8000-000000000001/gi2/ci0
                  device_class: gpu.mig
            allocations:
              description:
                - The allocations that have it, or a part of it, pending releases among them. See C(holds).
              type: list
              elements: str
              sample: [alloc_01jz8k2v]
            holders:
              description:
                - The processes that have its device nodes open, C(pid) and C(program), those that only watch it among
                  them. Seen as root.
              type: list
              elements: dict
              sample: [{"pid": 912, "program": "nvidia-persistenced"}]
            processes:
              description: The processes that compute on it, C(pid) and C(name).
              type: list
              elements: dict
              sample: [{"pid": 4242, "name": "python3"}]
        holds:
          description:
            - The allocations that have GPUs of this host, or whose release still waits, each with its C(allocation_id),
              C(binding), C(devices) and the C(generation) at which it was bound.
            - One that is C(releasing) is withdrawn, and keeps its claim until no pod has a device of it.
            - One whose file cannot be made out has a sentence in C(fault), and counts as having every GPU.
          returned: always
          type: list
          elements: dict
          sample:
            - allocation_id: alloc_01jz8k2v
              binding: BINDING_HOLD
              devices: [GPU-5f1c2a90-0000-4000-8000-000000000001/s3]
              generation: 42
              releasing: false
              fault: null
        runtimes:
          description:
            - The container runtimes and NVIDIA's container toolkit that are installed, each with its version. On a host
              without NVIDIA's driver nobody is asked for one, and it is null.
          returned: always
          type: dict
          sample: {"containerd": "1.7.27", "nvidia-ctk": "1.18.0"}
        kubelet:
          description:
            - What Kubernetes has of the host, empty where it has nothing. Whether the kubelet's program is
              C(installed), its C(version), and whether its service is C(active) and C(enabled).
            - Whether the host has C(joined) a cluster, the C(server) that its kubelet talks to, its C(node) there, the
              C(ca_pins) of the cluster, which are the SHA-256 of the public keys of its CA, and when its certificate
              ends, C(certificate_expires), in UTC. Only root sees these.
            - C(swap_allowed) is whether the cluster's kubelets run beside swap, null before a join.
          returned: always
          type: dict
          sample:
            installed: true
            version: 1.34.2
            active: true
            enabled: true
            joined: true
            server: https://10.0.0.1:6443
            node: gpu-01
            ca_pins: [8a1f0c3e5b7d9f2a4c6e8b0d1f3a5c7e9b2d4f6a8c0e1b3d5f7a9c2e4b6d8f0a]
            certificate_expires: "2027-11-30T00:01:21Z"
            swap_allowed: false
        capabilities:
          description:
            - What the host can do for reservations, V(cdi), V(devices.limits) and V(binding.kubernetes) with a GPU and
              root, V(nvml) when nvidia-smi answers; empty without a driver.
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
        going_down:
          description: Why the host is about to go down, empty where it is not.
          returned: O(availability) is true
          type: str
          sample: a reboot is scheduled (/run/systemd/shutdown/scheduled)
        node:
          description:
            - The host's Node in its cluster, its C(name), whether it is C(ready), and who cordoned it, C(cordoned_by),
              which is V(us) for M(bettercompute.bcd.kube_node), V(others), or null. Empty where there is none.
            - Its C(remembered) is true as long as root's record names it as cordoned by us, which it may be no more.
          returned: O(availability) is true
          type: dict
          sample: {"name": "gpu-01", "ready": true, "cordoned_by": null, "remembered": false}
        unreadable:
          description: A sentence on each key, or part of one, that could not be read.
          returned: always
          type: list
          elements: str
"""

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.info import run_info


def main() -> None:
    run_info(
        {
            "availability": {"type": "bool", "default": False},
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
            "signed_spec": {"type": "dict"},
        }
    )


if __name__ == "__main__":
    main()
