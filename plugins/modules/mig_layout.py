#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mig_layout
short_description: Divide NVIDIA GPUs into MIG instances
version_added: 0.1.0
description:
  - Turns MIG mode on or off, and makes the GPU and compute instances of a layout on every GPU that has MIG, or on some.
  - Profiles are those that C(nvidia-smi mig -lgip) offers on each GPU, and a layout fits when the placements of
    C(nvidia-smi mig -lgipp) have room for it. A layout that one GPU cannot have is refused before anything is
    destroyed, and nothing is written.
  - A GPU that shows its layout is left untouched. On another, instances that the layout has too are kept where the
    rest fits beside them, with their compute instances.
  - A GPU is busy while a live hold, a pending release, a compute process, or a process that has its device nodes open
    uses it. It is left alone, the others are divided, and the unit waits and names it.
  - GPUs older than Hopper change their mode at a reset. Where the driver does not make it by itself, this one GPU is
    reset; C(nvidia-persistenced) and DCGM are stopped for it and started again, and an unused C(nvidia_drm) is unloaded
    and loaded again. Where the reset cannot be made, the unit waits for a reboot.
  - What C(nvidia-smi) lists afterwards decides, never its exit status. A layout that is half made is completed by the
    next run.
  - Instances are lost at each reboot, and from Hopper on the mode too. The service C(bcd-mig.service) makes them again
    at boot before anything opens a GPU, by C(nvidia-smi) alone. It stays when the unit is removed. While any GPU has an
    instance, starting the service changes nothing.
options:
  state:
    description:
      - V(present) brings the GPUs to their layouts.
      - V(absent) changes nothing on the GPUs, whose layouts stay.
      - V(gathered) only reads, and returns RV(gpus), each with the layout that it has. Where the mode of one waits for
        a reset, RV(gpus[].pending) and RV(pending) say so.
    type: str
    choices: [present, absent, gathered]
    default: present
  layout:
    description:
      - The layout of every GPU with MIG that no entry of O(gpus) takes. Without it these are not managed.
      - V(off) is MIG mode off; V(empty) is MIG mode on, without instances; V(all-1g.10gb) is as many of a profile as
        the GPU takes.
      - Else a list of MIG devices, V(3g.40gb,2g.20gb,1g.10gb:2), each with how many there are of it. C(+) joins them as
        well, where no profile has an attribute.
      - A profile may have an attribute, V(1g.10gb+me), V(1g.24gb+gfx), V(1g.24gb+me.all), V(1g.24gb-me), and fewer
        compute slices than its GPU instance, V(1c.3g.40gb:3), of which as many as fit share one GPU instance.
      - Or the same as a mapping from profiles to counts.
      - Names are matched by slices and attribute, then by the nearest memory, since V(7g.79gb) and V(7g.80gb) are one
        profile under two firmwares.
    type: raw
  gpus:
    description:
      - Layouts of some GPUs. The first entry whose O(gpus[].select) takes a GPU counts for it.
      - An entry that takes none of the host's GPUs, or only GPUs without MIG, is refused.
    type: list
    elements: dict
    suboptions:
      select:
        description: Which GPUs the entry is for, by exactly one of these.
        type: dict
        required: true
        suboptions:
          uuid:
            description: The GPU of this UUID.
            type: str
          pci:
            description: The GPU at this PCI address, with a domain of four or eight digits.
            type: str
          index:
            description: The GPU that C(nvidia-smi) numbers so. Numbers move when a GPU comes or goes.
            type: int
          model:
            description: GPUs whose product name fits this pattern of C(*), C(?) and C([...]), in its case.
            type: str
      layout:
        description: Their layout, as O(layout).
        type: raw
        required: true
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Seven instances on each GPU
  bettercompute.bcd.mig_layout:
    layout: all-1g.10gb

- name: Two kinds of GPU on one host, and one GPU whole
  bettercompute.bcd.mig_layout:
    layout: "3g.40gb,2g.20gb,1g.10gb:2"
    gpus:
      - select: {index: 0}
        layout: "off"
      - select: {model: "*A30*"}
        layout: {2g.12gb: 1, 1g.6gb: 2}

- name: Read the layouts that the GPUs have
  bettercompute.bcd.mig_layout:
    state: gathered
  register: seen

- name: Give back the layouts of all GPUs whose mode waits for no reset, which changes nothing
  vars:
    given:
      select:
        uuid: "{{ item.uuid }}"
      layout: "{{ item.layout }}"
  bettercompute.bcd.mig_layout:
    gpus: ["{{ given }}"]
  loop: "{{ seen.gpus | rejectattr('pending') }}"
"""

RETURN = r"""
gpus:
  description: The GPUs that have MIG, each with its RV(gpus[].layout) in the form that O(layout) takes.
  returned: with O(state=gathered)
  type: list
  elements: dict
  contains:
    uuid:
      description: The GPU's UUID.
      type: str
    index:
      description: The number that C(nvidia-smi) gives it.
      type: int
    name:
      description: The product's name.
      type: str
    layout:
      description: What it is divided into.
      type: str
      sample: 3g.40gb,1g.10gb:4
    pending:
      description:
        - The MIG mode that waits for a reset of the GPU, V(on) or V(off); null where none does.
        - RV(gpus[].layout) is then of the mode before, and given back turns the mode that waits around again.
      type: str
      sample: null
  sample:
    - uuid: GPU-5f1c2a90-0000-4000-8000-000000000001
      index: 0
      name: NVIDIA H100 80GB HBM3
      layout: 3g.40gb,1g.10gb:4
      pending: null
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: mig-layout
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
    "state": {"type": "str", "choices": ["present", "absent", "gathered"], "default": "present"},
    "layout": {"type": "raw"},
    "gpus": {
        "type": "list",
        "elements": "dict",
        "options": {
            "select": {
                "type": "dict",
                "required": True,
                "options": {
                    "uuid": {"type": "str"},
                    "pci": {"type": "str"},
                    "index": {"type": "int"},
                    "model": {"type": "str"},
                },
            },
            "layout": {"type": "raw", "required": True},
        },
    },
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
