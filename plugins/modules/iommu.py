#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: iommu
short_description: Turn the IOMMU on, for devices that are passed through to guests
version_added: 0.1.0
description:
  - Adds the kernel arguments that turn the IOMMU of this CPU on, C(intel_iommu=on) or C(amd_iommu=on), on the boot
    loader that the machine really boots by. See M(bettercompute.bcd.cpu) for how each loader is configured.
  - A CPU without a vendor (Arm) has its SMMU on by default. Other vendors than Intel, AMD and Hygon are refused.
  - Where the kernel shows an IOMMU with groups already, no reboot is asked for. The arguments are written all the same,
    and RV(notes) say that they take effect at the next boot.
options:
  passthrough:
    description:
      - Whether the host's own devices go past the IOMMU (C(iommu=pt)), which spares them its cost.
      - V(true) when it is not given.
    type: bool
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: A host that passes GPUs through to virtual machines
  bettercompute.bcd.iommu:

- name: The same, with the host's own devices behind the IOMMU too
  bettercompute.bcd.iommu:
    passthrough: false

- name: No longer our concern; the boot arguments go
  bettercompute.bcd.iommu:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: iommu
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
    "passthrough": {"type": "bool"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.iommu import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
