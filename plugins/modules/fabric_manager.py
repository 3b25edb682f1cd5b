#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: fabric_manager
short_description: Keep NVIDIA Fabric Manager running on NVSwitch hosts
version_added: 0.1.0
description:
  - Installs NVIDIA's Fabric Manager at exactly the version of the loaded driver, holds its package at that version,
    and enables and starts its service, on hosts whose GPUs are connected through NVSwitches.
  - A host without NVSwitches has nothing to do, so the unit may be named for every host of a mixed pool.
  - NVSwitches are found on the PCI bus and under C(/proc/driver/nvidia-nvswitch/devices). The switches of NVLink 5, as
    of HGX B200 and B300, are managed through InfiniBand devices whose vital product data says C(SW_MNG); for these
    the packages C(nvlsm) and C(infiniband-diags) are installed too, and the module C(ib_umad) is loaded, now and at
    every boot by C(/etc/modules-load.d/bcd-fabric-manager.conf).
  - The switches of GB200 and GB300 racks are managed from outside the host. There, Fabric Manager is not installed and
    C(nvidia-imex) is left as it is, which RV(notes) says.
  - A version that no package source of the host offers is a failed step that names it and those that are offered. The
    repositories themselves are the business of the host's image.
  - A Fabric Manager that runs is changed and restarted only while no allocation holds a GPU, nothing computes on one,
    and no process has one open, clients and servers of MPS among them; until then the unit is Busy and names them.
    Programs that only watch and serve GPUs, such as C(nvidia-persistenced) and DCGM, do not count. Such a change has
    the disruption V(gpu).
  - A service that runs is not taken as proof. From Hopper on each GPU says whether it has joined the fabric, and the
    unit waits, with the condition, until all have. A GPU in MIG mode has no links and does not count.
  - The condition FabricManagerDown, with the reason NotRunning, lasts while the service or the fabric is not up.
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: The GPUs of an NVSwitch board reach each other
  bettercompute.bcd.fabric_manager:

- name: The same, unless a running Fabric Manager would have to be restarted for it
  bettercompute.bcd.fabric_manager:
    max_disruption: service
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: fabric-manager
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
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.fabric_manager import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
