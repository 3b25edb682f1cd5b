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

from ..module_utils.plan.installed import RECORD
from . import carried_start
from .program import of_parts, parts

# Run by `python3 -I -c`: it reads a line with a length, then as much text, and runs that.
START = "import sys;i=sys.stdin.buffer;exec(i.read(int(i.readline())))"
# It ends at once when it has answered: to take Python down in order costs a tenth of a pass (see front/cli.py).
ANSWER = START + ";import os;from bcd.front.for_controller import run;s=run();sys.stdout.flush();os._exit(s)"
TOO_OLD = carried_start.TOO_OLD


def payload() -> bytes:
    """The start, every part of the program, and its digest as where it is installed: what stands before the request."""
    with open(os.path.splitext(carried_start.__file__)[0] + ".py", "rb") as source:
        start = source.read()
    files = parts()  # read once: the digest is that of this very code
    whole = {**files, RECORD: of_parts(files).sha256.encode()}
    packed = {name: zlib.compress(text) for name, text in sorted(whole.items())}
    index = "".join(f"{name} {len(data)}\n" for name, data in packed.items())
    head = f"{len(start)}\n".encode() + start + f"{len(packed)}\n{index}".encode()
    return head + b"".join(packed.values())
