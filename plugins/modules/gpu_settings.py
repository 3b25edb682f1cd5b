#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_settings
short_description: Set the power limit and the ECC mode of NVIDIA GPUs
version_added: 0.1.0
description:
  - Sets a power limit and an ECC mode for every GPU of the host, or for some of them, with C(nvidia-smi).
  - Every GPU that answers is held against its own range before anything is set. A limit that one of them does not
    take is refused, and nothing is written.
  - A limit that differs by a watt or more is set, and read back. The driver forgets it when it is loaded again, and
    where persistence mode is off as its last client ends; the next run sets it again.
  - An ECC mode takes effect at the GPU's next reset, which is never tried here. Until then the unit waits for a reboot.
  - A GPU that does not answer fails by itself, and the others are set. A GPU without power management or without ECC is
    passed over with a note, unless O(gpus) asks it of that GPU.
  - It needs the driver; until C(nvidia-smi) answers, the unit waits. With no setting, nothing is run.
options:
  power_limit_watts:
    description: The power limit of every GPU, in watts.
    type: int
  ecc:
    description: Whether ECC is on, on every GPU that has it.
    type: bool
  gpus:
    description:
      - What is set on some GPUs instead. Of the entries, the first whose O(gpus[].select) takes a GPU counts for it;
        what that entry does not give is as for the whole host.
      - An entry that takes none of the host's GPUs is refused.
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
      power_limit_watts:
        description: Their power limit, in watts.
        type: int
      ecc:
        description: Whether ECC is on.
        type: bool
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Every GPU at 400 W, with ECC
  bettercompute.bcd.gpu_settings:
    power_limit_watts: 400
    ecc: true

- name: A host with two models
  bettercompute.bcd.gpu_settings:
    gpus:
      - select: {model: "*H100*"}
        power_limit_watts: 500
      - select: {pci: "0000:c1:00.0"}
        power_limit_watts: 70
        ecc: false

- name: No longer our concern; limits and modes stay
  bettercompute.bcd.gpu_settings:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: gpu-settings
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
    "power_limit_watts": {"type": "int"},
    "ecc": {"type": "bool"},
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
            "power_limit_watts": {"type": "int"},
            "ecc": {"type": "bool"},
        },
    },
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.gpu_settings import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
