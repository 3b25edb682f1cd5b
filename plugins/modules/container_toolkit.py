#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: container_toolkit
short_description: Install NVIDIA's container toolkit, configure the runtimes with it, and keep the CDI specification
version_added: 0.1.0
description:
  - Installs C(nvidia-container-toolkit) where C(nvidia-ctk) is missing.
  - Gives containerd, Docker and CRI-O the runtime C(nvidia), and turns CDI on in them. What a runtime's configuration
    comes to is compared, not the words in it; one that has what is wanted is left alone. Podman reads CDI by itself.
  - containerd and CRI-O get a drop-in of ours, Docker's C(daemon.json) two keys. No key of anyone else is lost.
    containerd's is C(/etc/containerd/conf.d/99-zz-bcd.toml), which M(bettercompute.bcd.k8s_join) has a part of too.
    containerd 1.x takes the whole table of a plugin from its last file, so the drop-in carries the table as it is
    without us, made anew on each run; C(containerd config dump) over the candidate shows it before anything is written.
  - Where there is no C(/etc/containerd/config.toml), one is made of containerd's own defaults, with the systemd cgroup
    driver where systemd runs.
  - A runtime is restarted only when its configuration changed, and only while it runs. A configuration that the runtime
    does not read is refused, and is never restarted into. A containerd that does not answer after its restart gets its
    former files back, byte for byte, and the same files are tried again after a reboot only.
  - Every NVIDIA device node gets its link in C(/dev/char), where runc looks for it. Without the link, a
    C(systemctl daemon-reload) takes the GPU away from running containers whose cgroups systemd manages. C(nvidia-ctk)
    makes the links, C(ln) those that it does not make, and after a boot a rule of udev in
    C(/etc/udev/rules.d/72-bcd-nvidia-dev-char.rules) does.
  - With CDI, GPUs are handed out by CDI alone. Containers can no longer choose them by a variable or by mounts, which
    any unprivileged container could. Every other line of C(/etc/nvidia-container-runtime/config.toml) stays.
  - With CDI, C(/etc/cdi/nvidia.json) names every GPU and MIG device by its UUID. C(nvidia-ctk) makes it anew when the
    driver, the devices, the toolkit or the device nodes change, or when a path in it is gone. A new one is checked
    whole before it takes the place of the old one. It needs a loaded driver; until then the unit waits.
  - While one GPU is lost, C(nvidia-smi -L) lists the others only in part, so no new specification is made for them
    either. The old one stays, and the unit fails with the lost GPU's PCI address, until that GPU is reset or the node
    is rebooted.
  - C(nvidia-cdi-refresh), which newer toolkits bring along, is made to write the same file, since what it writes to
    C(/var/run/cdi) would outrank it. It makes the file anew at boot.
  - Files of others in both folders that no runtime can read are named in RV(notes), each with its fault.
options:
  cdi:
    description:
      - Whether GPUs are handed out by CDI, which is so where this is not given.
      - With V(false), the runtimes get the runtime C(nvidia) only, and no specification is made or removed.
    type: bool
  runtimes:
    description:
      - The runtimes to configure, some of V(containerd), V(docker), V(crio) and V(podman). One that is named and not
        installed is waited for.
      - Those that are installed, where this is not given.
    type: list
    elements: str
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: All runtimes of the host, with CDI
  bettercompute.bcd.container_toolkit:

- name: Docker alone, and no restart of it now
  bettercompute.bcd.container_toolkit:
    runtimes: [docker]
    max_disruption: none

- name: No longer our concern; toolkit, runtimes and specification stay
  bettercompute.bcd.container_toolkit:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: container-toolkit
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
    "cdi": {"type": "bool"},
    "runtimes": {"type": "list", "elements": "str"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
