# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program bcd, installed on a host from its own zip: `python3 -I bcd-0.1.0.pyz install`.

Code lies in a folder of /usr/lib/bcd, and the script that is started names it. A folder is published whole and never
changed; the script is replaced in one rename. So a kill leaves the old program or the new one, and what runs keeps its
code: the folder that was named before stays, and older ones go.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..core import program_tree, rootfs
from ..core.errors import Fault, Refused, StepFailed
from ..core.host import Host, advice
from ..core.lock import only_pass
from ..core.step import File
from ..plan.installed import MADE, PROGRAMS, RECORD, SCRIPT
from ..plan.release import VERSION
from .result import of_fault

PART = re.compile(r"bcd/[a-z0-9_/]+\.py")
LONGEST_INTERPRETER = 120  # characters; the kernel reads 127 of a script's first line
OURS = f"{MADE}\n"
BEFORE = re.compile(r"^# before: (\S+)$", re.MULTILINE)
NAMED = re.compile(rf'^sys\.path\.insert\(0, "{PROGRAMS}/([^"/]+)"\)$', re.MULTILINE)


class Program(NamedTuple):
    """What is to be installed: the files of a folder by their relative paths, and the digest of their zip."""

    parts: Mapping[str, bytes]
    sha256: str


def install_result(archive: bytes, check: bool, interpreter: str = sys.executable) -> dict[str, Any]:
    """Install the zip's program for this interpreter; `check`: only say what would change. Never raises a Fault."""
    try:
        return _install(archive, check, interpreter)
    except Fault as fault:
        return {"version": VERSION, **of_fault(fault)}
    except OSError as fault:
        why = f"cannot install bcd: {fault.filename or PROGRAMS}: {fault.strerror}{advice(fault)}"
        return {"version": VERSION, **of_fault(StepFailed(why))}


def _install(archive: bytes, check: bool, interpreter: str) -> dict[str, Any]:
    host = Host()
    if host.uid() != 0:
        raise StepFailed("bcd is installed by root, and this account is not: run it with sudo")
    _check_interpreter(interpreter)
    program = unpacked(archive)
    script = _script(host)
    folder, is_there = _place(program)
    before = _named(script) or ""
    if before == folder:
        before = _group(BEFORE, script)
    text = render(interpreter, folder, before)
    there = host.file(SCRIPT)
    published, written = not is_there, there != File(text, 0o755)
    if not check:
        if published:
            program_tree.publish(PROGRAMS, folder, program.parts)
        if written:
            rootfs.write(SCRIPT, text.encode(), 0o755)
    removed = [] if check else _prune(host, {folder, before})
    return {
        "changed": published or written or bool(removed),
        "version": VERSION,
        "sha256": program.sha256,
        "folder": f"{PROGRAMS}/{folder}",
        "script": SCRIPT,
        "interpreter": interpreter,
        "removed": removed,
    }


def unpacked(archive: bytes) -> Program:
    """The program in a zip; raises Refused for one that is not of ours."""
    digest = hashlib.sha256(archive).hexdigest()
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as source:
            parts = {name: source.read(name) for name in source.namelist() if name != "__main__.py"}
    except (zipfile.BadZipFile, OSError, EOFError) as fault:
        raise Refused(f"the program's zip cannot be read ({fault}): copy it again") from None
    strange = [name for name in parts if not PART.fullmatch(name)]
    if strange or "bcd/front/cli.py" not in parts:
        raise Refused(f"the zip is not that of bcd ({(strange or ['it has no bcd/front/cli.py'])[0]}): copy it again")
    return Program({**parts, RECORD: f"{digest}\n".encode()}, digest)


def render(interpreter: str, folder: str, before: str) -> str:
    """The script: isolated from the caller's variables and folders, and writing no compiled code."""
    return (
        f"#!{interpreter} -IB\n{OURS}"
        + (f"# before: {before}\n" if before else "")
        + f"""import sys

sys.path.insert(0, "{PROGRAMS}/{folder}")

from bcd.core import compiled

compiled.take()

from bcd.front.cli import run

sys.exit(run(sys.argv[1:]))
"""
    )


def _script(host: Host) -> str:
    """The script that is there, "" for none; raises Refused for a program that is not ours."""
    text = host.read(SCRIPT)
    if text is not None and OURS not in text:
        raise Refused(f"{SCRIPT} is there and is not ours: move it away, and run again")
    return text or ""


def _named(script: str) -> str:
    return _group(NAMED, script)


def _group(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group(1) if found else ""


def _place(program: Program) -> tuple[str, bool]:
    """The name of the program's folder, and whether it is there; one that holds something else is left alone."""
    for name in _names(program):
        if not os.path.lexists(f"{PROGRAMS}/{name}"):
            return name, False
        if program_tree.is_whole(PROGRAMS, name, program.parts):
            return name, True
    raise AssertionError  # the names do not end


def _names(program: Program) -> Iterator[str]:
    """The version, as it is released; then names for other code of that version, as between two releases."""
    yield VERSION
    number = 1
    while True:
        yield f"{VERSION}+{program.sha256[:12]}" + (f".{number}" if number > 1 else "")
        number += 1


def _prune(host: Host, kept: set[str]) -> list[str]:
    """Remove our folders but these, while no pass runs; what a pass runs from is left for the next time."""
    found = [
        name
        for name in host.names(PROGRAMS)
        if name not in kept and (name.endswith(program_tree.DRAFT) or host.exists(f"{PROGRAMS}/{name}/{RECORD}"))
    ]
    if not found:
        return []
    try:
        with only_pass(host, "bcd install", wait=0):
            for name in found:
                program_tree.discard(PROGRAMS, name)
    except StepFailed:
        return []
    return [f"{PROGRAMS}/{name}" for name in found]


def _check_interpreter(interpreter: str) -> None:
    """Raise Refused for an interpreter by which another account could be root."""
    if not re.fullmatch(r"/[^\s]+", interpreter) or len(interpreter) > LONGEST_INTERPRETER:
        raise Refused(
            f"the interpreter {interpreter!r} cannot stand in a script's first line: run install with the system's "
            "own, such as /usr/bin/python3"
        )
    other = program_tree.not_roots(interpreter)
    if other:
        raise Refused(
            f"the interpreter {interpreter} is not root's alone ({other} can be changed by others), and root would run "
            "it: run install with the system's own, such as /usr/bin/python3"
        )
