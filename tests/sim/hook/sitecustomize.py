# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only the simulator puts this on PYTHONPATH: after the collection's `core.host` is imported, the simulated kernel
stands behind its Host. Where no namespace could be made (SIM_ROOT is set), Host is mapped into the tree as well, and
Ansible's own modules, which would act on the machine that the tests run on, are refused. What is compiled out of
archives is kept (sim_compiled.py).
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import sys
import types
from typing import Any

import sim_compiled  # type: ignore[import-not-found]  # it lies beside this file, which no package leads to

LIBRARY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
ROOT = os.environ.get("SIM_ROOT", "/")
PLAYED = (".module_utils.core.host", "bcd.core.host")  # of a module, of the program bcd
COMPILED = "/.sim/compiled" if ROOT == "/" else os.path.join(LIBRARY, ".build", "compiled")
REFUSED = ("ansible.modules.", "ansible_collections.ansible.")


class Loader:
    """Loads a module as its own loader would, then lets the simulator in."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Leave it to the import system."""
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        """Run its code; the zip importer of Python 3.9 can only hand it over."""
        if hasattr(self.real, "exec_module"):
            self.real.exec_module(module)
        else:
            exec(self.real.get_code(module.__name__), module.__dict__)  # noqa: S102  (what an importer is for)
        sys.path.append(LIBRARY)
        try:
            from tests.sim import played
        finally:
            sys.path.remove(LIBRARY)
        played.stand_behind(module, ROOT)

    def get_code(self, name: str) -> Any:
        """For runpy."""
        return self.real.get_code(name)


class Finder:
    """Finds `core.host` first, and what is refused."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of the module with our loader around its own; None for any other module."""
        if ROOT != "/" and name.startswith(REFUSED):
            refuse(f"{name} would act on this machine, not on the simulated one: no namespace can be made here")
        if not name.endswith(PLAYED):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


class Finders(list[Any]):
    """sys.meta_path, with the simulator's finder before any that is put first."""

    def insert(self, index: Any, finder: Any) -> None:
        """Put one in, behind the first."""
        super().insert(max(int(index), 1), finder)


def refuse(why: str) -> None:
    """End the module with a failure that Ansible understands."""
    sys.stdout.write(json.dumps({"failed": True, "msg": why}) + "\n")
    sys.stdout.flush()
    os._exit(1)


def uname() -> os.uname_result:
    """What os.uname says of the simulated machine: its kernel's release."""
    real = list(REAL_UNAME())
    try:
        with open(os.path.join(ROOT, "proc/sys/kernel/osrelease"), encoding="ascii") as source:
            real[2] = source.read().strip()
    except OSError:
        pass
    return os.uname_result(real)


REAL_UNAME = os.uname
os.uname = uname
sim_compiled.keep_in(COMPILED)
sys.meta_path = Finders([Finder(), *sys.meta_path])
