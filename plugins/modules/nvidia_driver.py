#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nvidia_driver
short_description: Install and load NVIDIA's driver in one full version
version_added: 0.1.0
description:
  - Installs the driver of a branch from the package sources that the host has, and loads it. The driver is the one that
    is asked for when the loaded module, its file for the running kernel, the library and the installed packages agree
    on the full version.
  - GPUs are looked for on the PCI bus. A host that has none, or whose GPUs are all bound to C(vfio-pci), has nothing to
    do, so that a pool of mixed hosts may name the unit for each.
  - A flavour or a branch that one of the GPUs cannot run is refused before any package is touched. So is a host whose
    GPUs need different flavours.
  - A newer driver of the branch in the package sources is no reason to install it. A driver that something else
    installed beside the loaded one is.
  - Packages of the driver that are of another version than its module and library, as an upgrade leaves them that was
    broken off, are brought to one version, which is O(version) where that is given, else that of one that is held, else
    the newest of those that are installed.
  - A loaded driver is swapped where nothing uses it. C(nvidia-persistenced), C(nvidia-fabricmanager), C(nvidia-dcgm)
    and C(bcd-mps) are stopped for that and started again, and its modules are unloaded leaf first. Modules that stood
    on it are loaded again.
  - While an allocation holds a GPU, or its release is pending, nothing is installed. Where processes or other modules
    use the driver, the packages are installed, and the unit waits for a reboot and names them.
  - nouveau is kept out with C(/etc/modprobe.d/bcd-nouveau.conf), and the initramfs is rebuilt. Where it is loaded, the
    unit waits for a reboot.
  - Where the kernel takes signed modules only, modules that the distribution signs come first; one without a signature
    is said plainly, and not loaded. With the signed modules of Ubuntu comes the metapackage that brings those of each
    kernel to come, where the kernel's own metapackage is installed, not held, and as new as in the package sources.
  - Missing device nodes are made, and C(nvidia-persistenced) is enabled and started where it is installed.
options:
  branch:
    description:
      - The branch of the driver, in digits, such as V(580).
      - Required, unless O(version) is given.
    type: str
  open:
    description:
      - Whether the open kernel modules are installed, or the proprietary ones.
      - Without it, what the GPUs need. GPUs since Blackwell, and Grace Hopper, need the open ones; those before Turing
        the proprietary ones; the others get the open ones from branch 560 on.
    type: bool
  version:
    description:
      - One exact version, such as V(580.95.05), at which the packages are held. It implies its branch.
      - Packages stay held when it is no longer given.
    type: str
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: The driver of branch 580, in the flavour that the GPUs need
  bettercompute.bcd.nvidia_driver:
    branch: "580"

- name: One exact version, on every host of a fleet
  bettercompute.bcd.nvidia_driver:
    version: 580.95.05
    open: true

- name: Install only where no driver is loaded yet
  bettercompute.bcd.nvidia_driver:
    branch: "580"
    max_disruption: none
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: nvidia-driver
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
    "branch": {"type": "str"},
    "open": {"type": "bool"},
    "version": {"type": "str"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.nvidia_driver import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
