#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cdi_holds
short_description: Hand GPUs, MIG devices and slots to workloads through CDI
version_added: 0.1.0
description:
  - Turns each assignment into a hold, which is a CDI specification and an env file for the workload manager of this
    host, and a slice of its own where the assignment books CPUs or memory. A container then asks for
    C(bcd.dev/gpu=<name>), where the name is the device's id with C(_) for C(/).
  - The list is the whole of what is held here. What it does not name is released, before anything is bound, so that a
    GPU may move from one allocation to another.
  - A hold stays as it was bound until it is released. It outlives a reboot, after which a run makes its slice and its
    env file again.
  - An assignment that cannot be honoured fails by itself, with its reason in RV(failures), and the others are bound.
    The task fails only by bad options, or where the host cannot be worked on at all.
  - Every bind, release and failure is journaled as an event, and returned by each run until its id is in
    O(acknowledge).
  - A Kubernetes hold is withdrawn at once when it is not named any more, and released once no pod has a device of it.
options:
  generation:
    description: The section's generation. It is in the events, and reported back once the host has come to it.
    type: int
  passthrough:
    description: GPUs that virtual machines have, or are to have, through VFIO. No hold gets one.
    type: list
    elements: dict
    suboptions:
      gpu:
        description: The GPU's UUID.
        type: str
        required: true
      instance:
        description: The instance that has it.
        type: str
        required: true
  instances:
    description:
      - Virtual machines whose memory is promised. One whose id is libvirt's name or UUID of a domain that runs is
        counted once; domains that run are counted without being named.
    type: list
    elements: dict
    suboptions:
      id:
        description: Its id.
        type: str
        required: true
      memory_bytes:
        description: Its memory, in bytes.
        type: int
      hugepages:
        description: Whether its memory is huge pages.
        type: bool
  max_cdi_version:
    description:
      - The newest CDI version that the container runtimes here understand, such as V(0.5.0). Specifications have the
        lowest version that says what they hold, and leave out what this one cannot say.
    type: str
  slot_count:
    description: How many slots a shared GPU has. It is 48 when it is not given.
    type: int
  acknowledge:
    description: Ids of RV(events) that their reader has accepted; they are not returned any more.
    type: list
    elements: str
  signing_key:
    description:
      - A file on the host, the node's private key in PEM form without a password (Ed25519, P-256, or RSA for PSS). It
        signs what binds and releases report.
      - Root owns it, and no one else can read or write it. The Python package C(cryptography) must be on the host.
    type: str
  node_id:
    description: The control plane's name of this node, which the events have. O(signing_key) needs it.
    type: str
  max_disruption:
    description: The most that a step may disturb. No step of a hold is above V(none), so it makes no difference here.
    type: str
    choices: [none, service, gpu]
    default: gpu
  signed_spec:
    description:
      - What the control plane signed for this host, the envelope that M(bettercompute.bcd.sign_spec) returns. The
        assignments, the generation and the node's name come from it, and where they are given as well have to equal it.
      - A host whose root pins a signer holds and releases nothing without it, and one whose root pins none refuses it.
        Only O(acknowledge) by itself takes none. It needs the Python package C(cryptography) on the host.
    type: dict
attributes:
  check_mode:
    description: Says what would be done, and changes nothing.
    support: full
  diff_mode:
    description: Shows the specifications and env files before and after.
    support: full
extends_documentation_fragment:
  - bettercompute.bcd.assignments
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Hold a GPU for an allocation, with CPUs and memory
  bettercompute.bcd.cdi_holds:
    generation: 42
    assignments:
      - allocation_id: alloc_01jz8k2v
        reservation_id: rsv_01jz8k1q
        binding: BINDING_HOLD
        devices:
          - id: GPU-5f1c2a90-0000-4000-8000-000000000001
        limits:
          cpus: 0-15
          mems: "0"
          memory_bytes: 68719476736
  register: held

- name: Say that its events were read
  bettercompute.bcd.cdi_holds:
    acknowledge: "{{ held.events | map(attribute='id') }}"

- name: Release all
  bettercompute.bcd.cdi_holds:
    assignments: []
"""

RETURN = r"""
bound:
  description: Allocations that this run bound, in check mode that it would bind.
  returned: when assignments is given
  type: list
  elements: str
  sample: [alloc_01jz8k2v]
kept:
  description: Allocations that were held before and still are.
  returned: when assignments is given
  type: list
  elements: str
released:
  description: Allocations that this run released.
  returned: when assignments is given
  type: list
  elements: str
releasing:
  description: Kubernetes allocations that are withdrawn, and whose devices pods may still have.
  returned: when assignments is given
  type: list
  elements: str
holds:
  description:
    - What is held after the run, in check mode before it, each with its C(allocation_id), C(binding), C(devices) and
      the C(generation) at which it was bound.
  returned: when assignments is given
  type: list
  elements: dict
failures:
  description:
    - The assignments that cannot be honoured, each with C(allocation_id), C(reason) and C(message).
    - The first of the checks that fails decides, V(unsupported-binding), V(node-unprivileged), V(unsupported-device),
      V(device-missing), V(overlap), V(resources-exhausted).
  returned: when assignments is given
  type: list
  elements: dict
  sample:
    - allocation_id: alloc_01jz8k3x
      reason: overlap
      message: GPU-5f1c2a90-0000-4000-8000-000000000001 is assigned to alloc_01jz8k2v
events:
  description:
    - The events that wait to be acknowledged, in the order in which they happened, each with its C(id), its C(type)
      (V(AllocationBound), V(AllocationReleased), V(AllocationFailed)) and its C(body), the text of canonical JSON.
    - Where O(signing_key) is given, binds and releases have a C(signature) in base64 over C(attested-report), a newline
      and the body, and the C(key_id) of the key, C(sha256/) and the base64 of its public key's digest.
    - In check mode, those of the runs before.
  returned: always
  type: list
  elements: dict
  sample:
    - id: bound-alloc_01jz8k2v-42-1760000000
      type: AllocationBound
      body: '{"allocation_id":"alloc_01jz8k2v","type":"AllocationBound"}'
section:
  description: What the assignments add up to.
  returned: when assignments is given
  type: dict
  contains:
    state:
      description: V(CONVERGED), V(PROGRESSING) while another run may help, or V(FAILED).
      type: str
      sample: CONVERGED
    message:
      description: What failed, each beginning with its allocation, and what is not converged yet.
      type: str
    observed_generation:
      description: The last O(generation) that ended V(CONVERGED) or V(FAILED).
      type: int
    conditions:
      description: The conditions, as RV(conditions) has them.
      type: list
      elements: dict
unit:
  description: The section's name.
  returned: always
  type: str
  sample: devices
state:
  description: RV(section.state) in lower case.
  returned: always
  type: str
  sample: converged
pending:
  description: What the holds wait for, each a V(reason) and a V(message).
  returned: always
  type: list
  elements: dict
agent:
  description:
    - What C(bcd agent), which the role C(bcd_agent) installs, did here when no controller was there.
    - It is there while its last pass did not end well, or it has repaired what no run has told yet. A run that
      ends has told it, and the next one does not.
  returned: when there is something to tell
  type: dict
  contains:
    last:
      description:
        - How its last pass ended. C(at) is the unix time at which it came to be so, and C(boot_id) the boot. C(host)
          and C(devices) have a C(state) and a C(message) each, or are null where that is not kept.
      type: dict
    repairs:
      description: What was repaired since, each with C(at), its C(unit) (C(devices) of holds) and its C(action).
      type: list
      elements: dict
      sample:
        - at: 1760000000
          unit: sysctl
          action: set vm.swappiness to 10
reboot_required:
  description: Always V(false), no hold waits for a reboot.
  returned: always
  type: bool
conditions:
  description:
    - Faults that others act on, each a V(type), V(status), V(reason) and V(message). V(KubernetesReleaseStuck) is a
      release that pods have kept for more than five minutes; V(KubernetesReleasesUnreadable) says that every GPU counts
      as claimed.
  returned: always
  type: list
  elements: dict
steps:
  description: What was done, or would be, in order; each an V(action), its V(disruption), and whether it is V(done).
  returned: always
  type: list
  elements: dict
notes:
  description: Sentences that never change the state, such as a change of a hold that waits for its release.
  returned: always
  type: list
  elements: str
reason:
  description: V(Refused) when an option is wrong and nothing was written, or V(StepFailed).
  returned: when something failed
  type: str
retryable:
  description: Whether another run may help.
  returned: when something failed
  type: bool
"""

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.holds import run_holds

ASSIGNMENT: dict[str, Any] = {
    "allocation_id": {"type": "str", "required": True},
    "reservation_id": {"type": "str"},
    "binding": {"type": "str", "required": True},
    "devices": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "id": {"type": "str", "required": True},
            "device_class": {"type": "str"},
        },
    },
    "limits": {
        "type": "dict",
        "options": {
            "cpus": {"type": "str"},
            "mems": {"type": "str"},
            "cpu_millis": {"type": "int"},
            "memory_bytes": {"type": "int"},
            "hugepages_2mi": {"type": "int"},
            "hugepages_1gi": {"type": "int"},
        },
    },
    "env": {"type": "list", "elements": "str", "no_log": True},
    "instance_id": {"type": "str"},
}
OPTIONS: dict[str, Any] = {
    "assignments": {
        "type": "list",
        "elements": "dict",
        "options": ASSIGNMENT,
    },
    "generation": {"type": "int"},
    "passthrough": {
        "type": "list",
        "elements": "dict",
        "no_log": False,
        "options": {
            "gpu": {"type": "str", "required": True},
            "instance": {"type": "str", "required": True},
        },
    },
    "instances": {
        "type": "list",
        "elements": "dict",
        "options": {
            "id": {"type": "str", "required": True},
            "memory_bytes": {"type": "int"},
            "hugepages": {"type": "bool"},
        },
    },
    "max_cdi_version": {"type": "str"},
    "slot_count": {"type": "int"},
    "acknowledge": {"type": "list", "elements": "str"},
    "signing_key": {"type": "str", "no_log": False},
    "node_id": {"type": "str"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}
RULES: dict[str, Any] = {"required_one_of": [["assignments", "acknowledge", "signed_spec"]]}


def main() -> None:
    run_holds(OPTIONS, RULES)


if __name__ == "__main__":
    main()
