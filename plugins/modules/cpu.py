#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cpu
short_description: Set the CPU frequency governor, and isolate CPUs for pinned workloads
version_added: 0.1.0
description:
  - Sets the frequency governor of every CPU that has one, at once. A virtual machine without cpufreq has nothing to
    set.
  - Isolates CPUs from the scheduler, the tick and RCU callbacks with the kernel arguments C(isolcpus), C(nohz_full) and
    C(rcu_nocbs), on the boot loader that the machine really boots by. They take effect at the next boot, which is
    reported as waiting for a reboot until the kernel shows exactly these CPUs as isolated.
  - The arguments are owned as words. Those of others keep their place, and removal takes out only what was added.
  - GRUB is configured with the drop-in C(/etc/default/grub.d/90-bcd-cpu.cfg), and every entry of the generated menu is
    checked. Entries are changed by C(grubby) on the RHEL family, together with the files that entries of future kernels
    are made from. With systemd-boot and unified kernel images C(/etc/kernel/cmdline) is edited and entries or images
    follow. On ostree systems C(rpm-ostree kargs) is used.
options:
  governor:
    description:
      - The frequency governor, such as V(performance).
      - One that the driver of a CPU does not offer is refused.
      - It is set now, and at each boot by C(/etc/tmpfiles.d/bcd-cpu.conf) where systemd runs.
      - Not managed when it is not given. Services that set governors too are named in RV(notes).
    type: str
  isolate:
    description:
      - A CPU list such as V(4-63,68-127). V(N) stands for the last CPU of the host, as in V(4-N).
      - V(0-15:2/4) means the first 2 of every 4 CPUs, as the kernel reads it.
      - CPU 0, a CPU that the host lacks, all of its CPUs, and a range that runs backwards are refused.
      - Empty or not given, the arguments that this unit added before are taken out.
    type: str
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: A host of virtual machines with pinned CPUs
  bettercompute.bcd.cpu:
    governor: performance
    isolate: 4-63,68-127

- name: All CPUs but the first four, however many there are
  bettercompute.bcd.cpu:
    isolate: 4-N

- name: No longer our concern; the boot arguments go, the governor stays
  bettercompute.bcd.cpu:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: cpu
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
    "governor": {"type": "str"},
    "isolate": {"type": "str"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.cpu import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
