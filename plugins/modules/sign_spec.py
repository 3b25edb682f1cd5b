#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: sign_spec
short_description: Sign what a host is to be, on the controller
version_added: 0.1.0
description:
  - Signs the desired state of one node, and returns the envelope that all other modules take as their O(signed_spec).
    A host whose root pins the signer's root then applies nothing else.
  - Runs where the key is, so with C(delegate_to=localhost) and without C(become). Nothing is written, there or on the
    host, and check mode signs too.
  - What no host would take is refused before it is signed. That is a setting that its unit refuses, an assignment that
    is none, a certificate that is not the key's, that has ended or that has not the role, and a chain that is broken.
  - What is signed is not hidden. Everyone who has the envelope can read what it asks for.
requirements:
  - The Python package C(cryptography), where the module runs.
options:
  node_id:
    description:
      - The node that the spec is for. A host takes specs of one node alone, which its join record names, or without one
        the first spec that it accepts.
    type: str
    required: true
  generation:
    description:
      - Which spec of the node this is. A host refuses one that is older than what it has accepted, and one that is not
        older but says something else, so each change takes a higher one.
    type: int
    required: true
  host:
    description:
      - The whole section of the host, a mapping from a unit's wire name to its settings in wire form.
      - V({}) cleans everything. Without it the spec manages no unit.
      - At least one of O(host) and O(devices) is required.
    type: dict
  devices:
    description:
      - What the host is to hold, the whole of it, as M(bettercompute.bcd.cdi_holds) takes it. V([]) releases all.
      - Without it the spec manages no hold.
    type: list
    elements: dict
    suboptions:
      allocation_id:
        description: The hold's name, of at most 80 letters, digits and C(_). It can be there once.
        type: str
        required: true
      reservation_id:
        description: Written into the specification and the env file.
        type: str
      binding:
        description: V(BINDING_HOLD) or V(BINDING_KUBERNETES).
        type: str
        required: true
      devices:
        description: What is held.
        type: list
        elements: dict
        required: true
        suboptions:
          id:
            description: The UUID of a GPU, C(<gpu>/gi<g>/ci<c>) of a MIG device, or C(<gpu>/s<k>) of a slot.
            type: str
            required: true
          device_class:
            description: V(gpu), which it is when it is not given, V(gpu.mig) or V(gpu.slot).
            type: str
      limits:
        description: Host resources that are booked with the devices.
        type: dict
        suboptions:
          cpus:
            description: The CPUs, a cpulist.
            type: str
          mems:
            description: The NUMA nodes, a list as of CPUs.
            type: str
          cpu_millis:
            description: CPU time, in thousandths of one CPU.
            type: int
          memory_bytes:
            description: Memory, in bytes.
            type: int
          hugepages_2mi:
            description: Huge pages of 2 MiB.
            type: int
          hugepages_1gi:
            description: Huge pages of 1 GiB.
            type: int
      env:
        description: More lines for the env file, C(KEY=VALUE) each. The envelope has them for everyone to read.
        type: list
        elements: str
      instance_id:
        description: Accepted, and not read.
        type: str
  private_key:
    description:
      - The signer's private key without a password, as PEM text (a vaulted variable, or a lookup), or a file that has
        it. It is Ed25519, ECDSA on P-256, or RSA of 2048 bits or more, which signs with PSS.
      - No result and no message has a word of it.
    type: str
    required: true
  certificates:
    description:
      - PEM texts, or files that have them, which may hold several each. The signer's own certificate is the first, its
        issuers follow, and the root that hosts pin is the last.
      - The signer's own has the URI V(bcd://role/worker) among its alternative names.
    type: list
    elements: str
    required: true
  trust_bundle:
    description:
      - The envelope of the control plane's trust bundle, which says which roots count. It goes along to hosts that pin
        the key of the control plane's join service, and has to have the root of O(certificates).
    type: dict
extends_documentation_fragment: bettercompute.bcd.everywhere
attributes:
  check_mode:
    description: Changes nothing in either mode, and signs in both.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
seealso:
  - module: bettercompute.bcd.host_intent
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Sign what this host is to be
  bettercompute.bcd.sign_spec:
    node_id: "{{ inventory_hostname }}"
    generation: 42
    host:
      sysctl:
        vm.swappiness: 10
    private_key: "{{ vault_worker_key }}"
    certificates:
      - "{{ playbook_dir }}/pki/worker.pem"
      - "{{ playbook_dir }}/pki/root.pem"
  delegate_to: localhost
  become: false
  register: spec

- name: Converge the host to it
  bettercompute.bcd.host_section:
    signed_spec: "{{ spec.envelope }}"
"""

RETURN = r"""
envelope:
  description: The signed spec, as C(signed_spec) and the roles' variables of that name take it.
  returned: success
  type: dict
  contains:
    body:
      description: What is signed, the base64 of its canonical JSON.
      type: str
    signature:
      description: The signature of C(desired-state), a newline and the body's bytes, in base64.
      type: str
    certificates:
      description: The certificates, one each.
      type: list
      elements: str
    trust_bundle:
      description: The trust bundle, where O(trust_bundle) was given.
      type: dict
root_sha256:
  description: The SHA-256 of the root's DER, which root on a host pins as C(command_root_sha256).
  returned: success
  type: str
  sample: 8f1c2b6e5d4a39781f60e5d4c3b2a19087f6e5d4c3b2a1908f7e6d5c4b3a2910
reason:
  description: V(Refused). No host would take what would have been signed, or the key or a certificate cannot be used.
  returned: failure
  type: str
retryable:
  description: V(false). Another run needs other options.
  returned: failure
  type: bool
"""

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.sign_spec import run_sign

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


def main() -> None:
    run_sign(
        {
            "node_id": {"type": "str", "required": True},
            "generation": {"type": "int", "required": True},
            "host": {"type": "dict"},
            "devices": {"type": "list", "elements": "dict", "options": ASSIGNMENT},
            "private_key": {"type": "str", "required": True, "no_log": True},
            "certificates": {"type": "list", "elements": "str", "required": True},
            "trust_bundle": {"type": "dict"},
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
            "signed_spec": {"type": "dict"},
        }
    )


if __name__ == "__main__":
    main()
