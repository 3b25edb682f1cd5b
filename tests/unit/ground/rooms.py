# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's files and what each imports, for the tests of its layout."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from tests.tools.copy_tree import known_files
from tests.tools.results import TOP

PACKAGE = "ansible_collections.bettercompute.bcd.plugins.module_utils"
MODULE_UTILS = TOP / "plugins" / "module_utils"


class Import(NamedTuple):
    name: str  # dotted and absolute: os, plan.files (for the collection's own), core.host
    ours: bool  # from module_utils
    lazy: bool  # inside a function
    line: int


def sources(*folders: str) -> list[Path]:
    """The Python files below these folders that git knows or would add; all of them without a folder."""
    names = [name for name in known_files(TOP) if name.endswith(".py")]
    return [TOP / name for name in names if not folders or name.startswith(tuple(f + "/" for f in folders))]


def imports(path: Path) -> list[Import]:
    """Every import of a file. "from ..core import host" counts as core and core.host: either may be the module."""
    found: list[Import] = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy = {id(inner) for outer in ast.walk(tree) if isinstance(outer, FUNCTIONS) for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = absolute(path, node)
            names = [start, *(f"{start}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            ours = name.startswith(PACKAGE + ".")
            found.append(Import(name.removeprefix(PACKAGE + "."), ours, id(node) in lazy, node.lineno))
    return found


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """The dotted name that a from-import starts at, with the leading dots resolved against the file's place."""
    if not node.level:
        return node.module or ""
    folder = path.parent
    for _step in range(node.level - 1):
        folder = folder.parent
    parts = ["ansible_collections", "bettercompute", "bcd", *folder.relative_to(TOP).parts]
    return ".".join(parts + ([node.module] if node.module else []))


def room(path: Path) -> str:
    """The first folder below module_utils that a file lies in: core, look, plan, units, intent, front."""
    return path.relative_to(MODULE_UTILS).parts[0]
