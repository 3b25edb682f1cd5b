#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_sharing
short_description: Share NVIDIA GPUs between clients, by MPS or by time slices
version_added: 0.1.0
description:
  - With O(mode=mps), keeps the CUDA MPS daemon as the service C(bcd-mps.service), for every GPU that has no MIG. Each
    client may use an even share of a GPU's SMs and of its memory.
  - The service counts as running when its daemon answers, with the limits that it was given. Until then the condition
    V(MPSDown) is reported.
  - While it runs, the compute mode of its GPUs is EXCLUSIVE_PROCESS, so that nothing passes it by; when it stops,
    DEFAULT. A limit or a compute mode that somebody changed is set again without a restart.
  - Clients find the daemon in C(/run/nvidia-mps). The directory stays when the service stops, so that what is mounted
    into containers is still the same when it runs again.
  - With O(mode=timeslice), that service is stopped and removed, and the compute modes that it set go back. The GPUs
    share by themselves.
  - The service is not changed while an allocation has one of its GPUs or a process computes on one. The unit then
    waits, and says for whom. A service that is down is started for the slots that wait for it.
  - MPS is refused where every GPU has MIG, or is to have it by the layout that M(bettercompute.bcd.mig_layout) applied.
    Where only some have, they are left out, with a note.
  - A daemon of ours that still runs where MPS is refused so stays as it is, and M(bettercompute.bcd.mig_layout) waits
    for its server as for any other process, until O(mode=timeslice) or O(state=absent) stops it.
  - A GPU that is lost under a daemon that answers fails by itself. The daemon is not restarted without it, whoever uses
    the others, and the unit says what that waits for.
  - An MPS daemon of somebody else is named in RV(notes).
options:
  mode:
    description: How the clients of a GPU share it. Required unless O(state=absent).
    type: str
    choices: [mps, timeslice]
  replicas:
    description:
      - How many clients share a GPU, from 1 to 48. With MPS each gets 100 divided by this, in percent of the SMs, and
        this part of the memory.
      - By default 10 with MPS and 4 with time slices, where it changes nothing on the host.
    type: int
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Eight clients a GPU, each with an eighth of it
  bettercompute.bcd.gpu_sharing:
    mode: mps
    replicas: 8

- name: Time slices
  bettercompute.bcd.gpu_sharing:
    mode: timeslice

- name: No longer our concern; the service goes
  bettercompute.bcd.gpu_sharing:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: gpu-sharing
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
    "mode": {"type": "str", "choices": ["mps", "timeslice"]},
    "replicas": {"type": "int"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.gpu_sharing import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
