# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program bcd carried to a host for one pass: what a Python there is given on its standard input.

Ansible's own way to bring a module is to find, in every run, what each of its files imports, and to have the host
compile AnsibleModule before anything of ours begins. That costs the controller a second a run and the host most of a
pass. The program is the same code without it: `START` has the host's Python read the start, the start finds the parts,
and the program takes its request from what is left.
"""

from __future__ import annotations

import os
import zlib

from . import carried_start
from .program import parts

# Run by `python3 -I -c`: it reads a line with a length, then as much text, and runs that.
START = "import sys;i=sys.stdin.buffer;exec(i.read(int(i.readline())))"
TOO_OLD = carried_start.TOO_OLD


def payload() -> bytes:
    """The start, and every part of the program: what stands before the request."""
    with open(os.path.splitext(carried_start.__file__)[0] + ".py", "rb") as source:
        start = source.read()
    packed = {name: zlib.compress(text) for name, text in sorted(parts().items())}
    index = "".join(f"{name} {len(data)}\n" for name, data in packed.items())
    head = f"{len(start)}\n".encode() + start + f"{len(packed)}\n{index}".encode()
    return head + b"".join(packed.values())
