# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every unit module's documentation shares."""

from __future__ import annotations


class ModuleDocFragment:
    """The options and attributes of the unit modules."""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) brings the unit to its settings; what is not given is not managed.
      - V(absent) removes what is ours alone; no other option is required. What stays is said in RV(ignore:notes).
    type: str
    choices: [present, absent]
    default: present
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
      - What the control plane signed for this host, the envelope that M(bettercompute.bcd.sign_spec) returns. The unit
        takes its settings from it, and options given as well have to equal them.
      - With V(state=absent) it has to leave the unit out. Without V(state=absent) it has to name it.
      - A host whose root pins a signer applies nothing without it, and one whose root pins none refuses it. It takes
        the Python package C(cryptography) on the host.
    type: dict
attributes:
  check_mode:
    description: Says what would be done, and changes nothing.
    support: full
  diff_mode:
    description: Shows files and kernel values before and after.
    support: full
"""
