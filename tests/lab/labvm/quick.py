# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes the guest quicker under emulation and belongs to its clean state; nothing of it is in the image.

The guest's Python takes what it is sent to import as code that is compiled already, which is half of a pass: the hook
of the simulated hosts (tests/sim/hook/sim_compiled.py), and a directory with the code of all that Ansible may send.
This machine compiles it in a second, where its Python is of the guest's version; where it is not, the guest compiles
each text once after each revert. And an initramfs is compressed as quickly as can be.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import marshal
import tarfile
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

from .machine import Machine

TOP = Path(__file__).parents[3]
HOOK = TOP / "tests" / "sim" / "hook" / "sim_compiled.py"
PACKAGES = "/usr/lib/python3/dist-packages"  # also of a Python that heeds no variable
PLACE = "/var/cache/lab-compiled"


def prepare(machine: Machine) -> None:
    """Have every Python of the guest take from, and add to, a directory of compiled code that is filled now."""
    machine.run(("tee", "/etc/initramfs-tools/conf.d/lab-quick"), stdin="COMPRESSLEVEL=1\n")
    packed = base64.b64encode(archive(hook())).decode()
    machine.ssh(f"mkdir -p {PLACE} && base64 -d | tar -xz -C {PLACE}", stdin=packed)
    machine.run(("tee", f"{PACKAGES}/{HOOK.name}"), stdin=HOOK.read_text(encoding="utf-8"))
    line = f"import {HOOK.stem}; {HOOK.stem}.keep_in({PLACE!r})\n"
    machine.run(("tee", f"{PACKAGES}/lab.pth"), stdin=line)
    machine.run(("python3", "-c", "pass"))  # compiles the hook itself


def hook() -> types.ModuleType:
    """The hook as a module of this Python: it knows how code is named."""
    spec = importlib.util.spec_from_file_location(HOOK.stem, HOOK)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def archive(hook: types.ModuleType) -> bytes:
    """A tar file of the code of every source, each by the name that the hook looks for."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as packed:
        for source in sources():
            text = source.read_bytes()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Ansible's files
                code = marshal.dumps(compile(text, source.name, "exec", dont_inherit=True))
            entry = tarfile.TarInfo(hook.name(text))
            entry.size, entry.mode = len(code), 0o644
            packed.addfile(entry, io.BytesIO(code))
    return out.getvalue()


def sources() -> Iterator[Path]:
    """What Ansible may put into an archive: the collection's modules and what they share, and its own of both."""
    found = importlib.util.find_spec("ansible")
    assert found is not None
    [ansible] = found.submodule_search_locations or []
    modules = ("setup", "command", "copy", "file", "stat", "slurp", "ping", "systemd", "reboot", "package", "apt")
    yield from sorted((TOP / "plugins" / "modules").glob("*.py"))
    yield from sorted((TOP / "plugins" / "module_utils").rglob("*.py"))
    yield from sorted(Path(ansible, "module_utils").rglob("*.py"))
    yield from (path for name in modules if (path := Path(ansible, "modules", f"{name}.py")).exists())
