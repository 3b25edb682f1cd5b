#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: sysctl
short_description: Set kernel parameters, now and at every boot
version_added: 0.1.0
description:
  - Sets kernel parameters below C(/proc/sys) where they differ, and writes them to C(/etc/sysctl.d/90-bcd.conf) for
    early boot. No other file is written.
  - A value is tried on the running kernel first. One that the kernel refuses, or of which it keeps something else,
    fails the task and is not written to the file; the other parameters are set all the same.
  - A parameter that the kernel lacks is written to the file and reported as RV(pending), NotReady. Load the module that
    provides it with M(bettercompute.bcd.kernel_modules).
  - Parameters that run a program as root or hand out the host are refused whatever the value, among them
    C(kernel.core_pattern), C(kernel.modprobe), C(kernel.modules_disabled), C(kernel.usermodehelper.*),
    C(fs.binfmt_misc.*) and C(kernel.kexec_*).
  - Parameters that harden the host, such as C(kernel.kptr_restrict) or C(net.ipv4.conf.*.accept_redirects), take only
    plain decimal integers that keep the defense up.
  - A file of sysctl.d that is read after ours, or C(/etc/sysctl.conf), and sets a parameter of ours to another value is
    named in RV(notes) and left alone.
options:
  values:
    description:
      - Parameters and their values. Without any, our file is removed.
      - In a name, the first separator decides. Where it is a dot, a slash stands for a dot inside a part
        (C(net.ipv4.conf.eth0/100.forwarding)); where it is a slash, dots are plain
        (C(net/ipv4/conf/eth0.100/forwarding)).
      - A value is an integer, a boolean (V(true) is 1, V(false) is 0) or one line of at most 4096 characters, in which
        white space is collapsed. A number with a fraction is refused. A string is never taken for a boolean.
    type: dict
extends_documentation_fragment:
  - bettercompute.bcd.unit
seealso:
  - module: bettercompute.bcd.kernel_modules
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: A host of sandboxes
  bettercompute.bcd.sysctl:
    values:
      vm.swappiness: 10
      net.ipv4.ip_forward: true
      net.ipv4.tcp_rmem: 4096 131072 6291456

- name: One interface whose name has a dot
  bettercompute.bcd.sysctl:
    values:
      net.ipv4.conf.eth0/100.forwarding: 1

- name: No longer our concern; live values stay until a reboot
  bettercompute.bcd.sysctl:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: sysctl
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
    "values": {"type": "dict"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.sysctl import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
