# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation of host_plan and host_section shares."""

from __future__ import annotations


class ModuleDocFragment:
    """The options and attributes of the two modules of a whole host."""

    DOCUMENTATION = r"""
options:
  units:
    description:
      - The whole section, a mapping from a unit's wire name (V(kernel-modules)) to its settings in wire form
        (V(pages2m), not C(pages_2m); of V(sysctl) the flat mapping of keys to values).
      - A unit that this host's record says we applied and that is not named here is cleaned. V({}) cleans everything.
      - A name that no unit has fails by itself; the others go on.
      - One of O(units), O(wire_units) and O(signed_spec) is required.
    type: dict
  wire_units:
    description:
      - The same section as it travels. Unlike a mapping it shows what was wrong with the text. A unit named twice fails
        the whole section; settings with a key twice, with C(NaN), or with anything after them fail their unit.
    type: list
    elements: dict
    suboptions:
      unit:
        description: The unit's wire name.
        type: str
        required: true
      settings:
        description: Its settings, as the text of one JSON object.
        type: raw
        required: true
  known:
    description: Units that we applied on this host, besides those of its record; for a host whose record was lost.
    type: list
    elements: str
  generation:
    description: The section's generation, reported back once the host has come to it.
    type: int
  max_disruption:
    description:
      - The most that a step may disturb. What is above it is planned and reported as held back.
      - V(none) writes files and kernel values, loads modules, installs packages and starts what is stopped.
      - V(service) also restarts what runs, loads modules again and turns swap off.
      - V(gpu) also swaps the driver, resets GPUs, and changes MIG and compute modes.
      - Nothing ever reboots the host.
    type: str
    choices: [none, service, gpu]
    default: gpu
  signed_spec:
    description:
      - What the control plane signed for this host, the envelope that M(bettercompute.bcd.sign_spec) returns. The
        section and its generation come from it. O(units), O(wire_units) and O(generation) are not needed then, and
        where they are given have to equal it.
      - A host whose root pins a signer applies nothing without it, and one whose root pins none refuses it. It takes
        the Python package C(cryptography) on the host.
    type: dict
  secrets:
    description:
      - Secrets, a string each, by the reference that names them. V(k8s-join) takes the token of a join by its
        C(joinTokenRef), and by V(token) where it has none.
      - They are needed when a step that is due takes one. RV(secrets_needed) says which are missing.
      - Without pipelining Ansible copies a module to the host with its options in it, and where the run is killed that
        file stays. So set C(ansible_pipelining=true) for a task with secrets, as the role C(bcd_converge) does.
    type: dict
  node_id:
    description: The control plane's name of this node, which V(k8s-join) makes a label of the Node.
    type: str
  site:
    description: The site that the node belongs to, which V(k8s-join) makes a label of the Node.
    type: str
  only:
    description:
      - Apply these units alone. The others are planned over the host as these leave it, and decide neither
        RV(ignore:changed) nor whether the task fails.
    type: list
    elements: str
  fail_on:
    description:
      - What makes the task fail, once, after every unit had its turn, and with all the keys of the result.
      - V(terminal) is a unit that another run cannot help.
      - V(failed) is also a step that failed.
      - V(progressing) is also a unit that waits, for a reboot say.
      - V(never) leaves it to who reads the result.
    type: str
    choices: [terminal, failed, progressing, never]
    default: failed
  fail_on_secrets:
    description:
      - Also fail M(bettercompute.bcd.host_section) where a unit waits for a secret, whatever O(fail_on) is. A caller
        then looks the secrets up in a C(rescue), which costs a host that needs none nothing.
      - Means nothing in check mode, and to M(bettercompute.bcd.host_plan).
    type: bool
    default: false
  label:
    description: The host's name in the run's statistics. Without it, the name that its kernel has.
    type: str
attributes:
  check_mode:
    description: Says what would be done, and changes nothing.
    support: full
  diff_mode:
    description: Shows files and kernel values before and after.
    support: full
  facts:
    description: Returns its whole result as RV(ignore:ansible_facts.bcd_converge_status).
    support: full
"""
