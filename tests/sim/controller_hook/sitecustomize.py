# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only the tests put this on PYTHONPATH, where they start Ansible: what it built of a module is kept for the next run
(tests/sim/archives.py), and so is what the modules compile that it runs on this machine (hook/sim_compiled.py). Nothing
but one module of Ansible's is touched.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

BUILDER = "ansible.executor.module_common"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))


class Loader:
    """Loads the builder of modules as its own loader would, then lends the run what former ones built."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def create_module(self, spec: Any) -> types.ModuleType | None:
        """Leave it to the import system."""
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        """Run its code."""
        self.real.exec_module(module)
        sys.path.append(TOP)
        try:
            from tests.sim import archives
        finally:
            sys.path.remove(TOP)
        archives.lend(os.path.join(module.C.DEFAULT_LOCAL_TMP, "ansiballz_cache"), os.path.join(TOP, ".build/archives"))


class Finder:
    """Finds the builder of modules, once."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Its spec with our loader around its own; None for any other module."""
        if name != BUILDER:
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader)  # type: ignore[assignment]
        return spec


sys.meta_path.insert(0, Finder())
sys.path.append(os.path.join(TOP, "tests", "sim", "hook"))
try:
    import sim_compiled  # type: ignore[import-not-found]  # it lies in that directory, which no package leads to
finally:
    sys.path.pop()
sim_compiled.keep_in(os.path.join(TOP, ".build", "compiled"))
