#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_config
short_description: Say who may sign for a host, and what root allows there
version_added: 0.1.0
description:
  - Keeps root's configuration, C(/etc/bcd/config.toml), which decides what the collection, its helper and its agent do
    as root. It is root's, readable by a group, in a directory that no one else can write.
  - What is not given stays as it is, keys and tables that the collection does not know too. Comments do not.
  - With a join record, keeps that as C(/var/lib/bcd-hostconfig/join-record.json). It says which node the host is. One
    that the pinned key did not sign refuses the whole task, and nothing is written.
  - Needs root, and never goes through the helper. An account without root must not say who may sign.
options:
  allowed_clusters:
    description:
      - The Kubernetes clusters that the host may join, C(https://host[:port]#sha256:<64 hex digits>) each, the API
        server and the SHA-256 of its CA.
      - V([]) allows none.
    type: list
    elements: str
  host_units:
    description: Whether units may be applied here at all. With V(false) each refuses.
    type: bool
  command_roots:
    description:
      - SHA-256 digests of the roots, in DER, that signed specs have to chain to. From then on, nothing unsigned is
        applied.
      - V([]) takes the pin away.
    type: list
    elements: str
  join_pin:
    description:
      - The key that signs trust bundles and join records, C(sha256/) and the base64 of the SHA-256 of its
        SubjectPublicKeyInfo.
      - An empty text takes the pin away, and the join record with it.
    type: str
  join_record:
    description:
      - The control plane's signed answer to the host's join, an envelope. O(join_pin), or the pin that is there, is
        what verifies it.
      - The record of another node moves the host there, and generations start over.
      - V({}) takes the record away.
    type: dict
  signing_key:
    description:
      - The file with the node's private key, which the helper may sign reports with.
      - An empty text takes it out.
    type: str
  group:
    description: The group whose members may read the configuration and talk to the helper. It is made if there is none.
    type: str
    default: bcd
extends_documentation_fragment: bettercompute.bcd.everywhere
attributes:
  check_mode:
    description: Says what would be done, and changes nothing.
    support: full
  diff_mode:
    description: Shows files before and after.
    support: full
seealso:
  - module: bettercompute.bcd.host_intent
  - module: bettercompute.bcd.sign_spec
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Take signed specs alone, and let the host join one cluster
  bettercompute.bcd.host_config:
    command_roots:
      - 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0
    allowed_clusters:
      - https://10.0.0.1:6443#sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff

- name: Bind the host to the node that the control plane joined it as
  bettercompute.bcd.host_config:
    join_pin: sha256/LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=
    join_record: "{{ lookup('ansible.builtin.file', 'join/' ~ inventory_hostname ~ '.json') | from_json }}"

- name: Keep the units off a host
  bettercompute.bcd.host_config:
    host_units: false
"""

RETURN = r"""
pins:
  description: Who may sign for the host now, C(command_roots) and C(join_pin).
  returned: when the configuration could be planned
  type: dict
  contains:
    command_roots:
      description: The digests of the pinned roots.
      type: list
      elements: str
    join_pin:
      description: The pinned key, empty where none is.
      type: str
node_id:
  description: The node that O(join_record) names.
  returned: when a join record was given and verified
  type: str
  sample: node-7
unit:
  description: What was converged, V(host-config).
  returned: always
  type: str
  sample: host-config
state:
  description: V(converged), V(progressing) where a retry may help, or V(failed).
  returned: always
  type: str
  sample: converged
steps:
  description: What was done, or would be, in order; each an V(action), its V(disruption), and whether it is V(done).
  returned: always
  type: list
  elements: dict
notes:
  description: Sentences that never change RV(state).
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

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.host_config import run_config


def main() -> None:
    run_config(
        {
            "allowed_clusters": {"type": "list", "elements": "str"},
            "host_units": {"type": "bool"},
            "command_roots": {"type": "list", "elements": "str"},
            "join_pin": {"type": "str"},
            "join_record": {"type": "dict"},
            "signing_key": {"type": "str", "no_log": False},
            "group": {"type": "str", "default": "bcd"},
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
            "signed_spec": {"type": "dict"},
        }
    )


if __name__ == "__main__":
    main()
