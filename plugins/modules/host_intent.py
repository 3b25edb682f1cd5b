#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_intent
short_description: Say what a signed spec asks of a host, where the host would take it
version_added: 0.1.0
description:
  - Verifies a signed spec as every module does that is given one, by what root pins on the host, by its join record and
    by what it accepted before, and returns what the spec asks for. What would be refused fails with that refusal.
  - Changes nothing and remembers nothing, so that a spec which was only looked at can still be followed by an older
    one.
requirements:
  - The Python package C(cryptography), on the host.
options:
  signed_spec:
    description: The envelope, as M(bettercompute.bcd.sign_spec) returns it.
    type: dict
    required: true
  max_disruption:
    description: Accepted, so that defaults for the action group C(all) fit; it means nothing here.
    type: str
    choices: [none, service, gpu]
    default: gpu
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
seealso:
  - module: bettercompute.bcd.sign_spec
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Look what the control plane asks of this host
  bettercompute.bcd.host_intent:
    signed_spec: "{{ bcd_converge_signed_spec }}"
  register: intent

- name: Say which units it manages
  ansible.builtin.debug:
    msg: "generation {{ intent.generation }} has {{ intent.units | default({}, true) | list | join(', ') }}"
"""

RETURN = r"""
node_id:
  description: The node that the spec is for.
  returned: success
  type: str
  sample: node_01jz8k0a
generation:
  description: Which spec of the node it is.
  returned: success
  type: int
  sample: 42
units:
  description: The section of the host in wire form, null where the spec manages none.
  returned: success
  type: dict
  sample: {"sysctl": {"vm.swappiness": 10}}
devices:
  description:
    - The assignments, null where the spec manages no hold. Of lines for env files only the keys are shown.
  returned: success
  type: list
  elements: dict
reason:
  description: V(Refused) when this host would not take the spec, or V(StepFailed) when that cannot be said.
  returned: failure
  type: str
retryable:
  description: Whether another run may help.
  returned: failure
  type: bool
"""

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.host_intent import run_intent


def main() -> None:
    run_intent(
        {
            "signed_spec": {"type": "dict", "required": True},
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
        }
    )


if __name__ == "__main__":
    main()
