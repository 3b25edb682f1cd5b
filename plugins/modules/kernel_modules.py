#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_modules
short_description: Load kernel modules with their options, or keep them out
version_added: 0.1.0
description:
  - Loads kernel modules now and at every boot, with their options, and keeps others out.
  - Writes C(/etc/modules-load.d/bcd.conf) and C(/etc/modprobe.d/bcd.conf), and rebuilds the initramfs where these
    files reach into it.
  - A loaded module whose parameters differ from its options is loaded again only when nothing uses it. One that is in
    use is reported as waiting for a reboot, with what holds it.
  - Options that the kernel does not show, and that a module was loaded without, count as differing until it is loaded
    again, in this boot or the next. Those of NVIDIA's driver are read from C(/proc/driver/nvidia/params).
  - Only the modules that are named are unloaded, not what they alone need.
options:
  load:
    description: Modules to load now and at every boot.
    type: list
    elements: str
  options:
    description:
      - Options by module, one line each, such as V(nested=1).
      - Each option is C(name), C(name=value) or C(name="a value with blanks"), in ASCII; what can be read in
        another way is refused.
    type: dict
  blacklist:
    description:
      - Modules to keep out, from automatic loading and from a C(modprobe) by name.
      - One that is loaded is unloaded when nothing uses it.
    type: list
    elements: str
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: A host of virtual machines
  bettercompute.bcd.kernel_modules:
    load: [kvm_amd, vhost_net, tun, br_netfilter]
    options:
      kvm_amd: nested=1

- name: A host that hands its GPUs to virtual machines
  bettercompute.bcd.kernel_modules:
    load: [vfio-pci]
    blacklist: [nouveau]

- name: No longer our concern; loaded modules stay
  bettercompute.bcd.kernel_modules:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: kernel-modules
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
    "load": {"type": "list", "elements": "str"},
    "options": {"type": "dict"},
    "blacklist": {"type": "list", "elements": "str"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.kernel_modules import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
