# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded output of the tools, one file a session: what the parsers and the simulated machines are held to.

`smi<branch>_*` is the text, layout and exit status of nvidia-smi of that driver branch over a simulated GPU, so the
values are made up. `real_*` has the form of what real hardware printed, with other identifiers. A session is a list of

    $ [FAIL=<what>=<code>] <command line>
    <output>
    [stderr] <a line of standard error>
    [exit status <n>]

where FAIL names the NVML call that was made to answer that code. Where no exit status was recorded, there is none.
`kubernetes/kubeadm136_*` is kubeadm 1.36 against a real control plane, both its outputs in one as a terminal shows
them; but for the first of them, a failed verification of the system was to be ignored.
`derived_*` is put together by hand from what hardware shows elsewhere: an illustration.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer

FOLDER = Path(__file__).parent
STATUS = re.compile(r"\[exit status (\d+)\]")
FAIL = re.compile(r"(?:FAIL=(\S+) )?(.*)")


class Command(NamedTuple):
    """One command of a session: its line, what was made to fail, its exit status where recorded, and its output."""

    line: str
    fail: str
    rc: int | None
    text: str
    err: str

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line's words."""
        return tuple(shlex.split(self.line))

    @property
    def answer(self) -> Answer:
        """What a program answers; success where no exit status was recorded."""
        return Answer(self.rc or 0, self.text, self.err)


def raw(name: str) -> str:
    """A file of this folder as it is."""
    return (FOLDER / name).read_text(encoding="utf-8")


def names(prefix: str = "") -> list[str]:
    """The sessions whose names begin so."""
    return sorted(path.stem for path in FOLDER.glob(f"{prefix}*.txt"))


def session(name: str) -> tuple[Command, ...]:
    """The commands of a session, in order."""
    blocks = re.split(r"^\$ ", raw(f"{name}.txt"), flags=re.MULTILINE)
    assert blocks[0] == "", f"{name} does not begin with a command"
    return tuple(_command(block) for block in blocks[1:])


def _command(block: str) -> Command:
    line, *lines = block.splitlines()
    status = STATUS.fullmatch(lines[-1]) if lines else None
    if status:
        lines.pop()
    errors = [said.partition(" ")[2] for said in lines if said.startswith("[stderr] ")]
    output = [said for said in lines if not said.startswith("[stderr] ")]
    named = FAIL.fullmatch(line)
    assert named is not None
    return Command(
        named.group(2),
        named.group(1) or "",
        int(status.group(1)) if status else None,
        "".join(f"{said}\n" for said in output),
        "".join(f"{said}\n" for said in errors),
    )
