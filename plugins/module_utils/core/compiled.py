# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed program's compiled code in one file, which a start opens in place of a file for each module.

The file begins with the magic number of the Python that compiled it and the length of an index, which has of each
module whether it is a package, and where its code lies behind the index. Another Python has another file, or none: it
imports the modules as Python does. What root publishes is never changed (see program_tree), so nothing is compared.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec  # what importlib.machinery has, without all that this imports
from _frozen_importlib_external import MAGIC_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Index = dict[str, tuple[bool, int, int]]  # by module: is it a package; offset and length of its code, in bytes

HERE = "core/compiled.py"  # this file in its package
AT_ONCE = 1 << 15  # bytes that have the whole index, most often
SIZE = 4  # bytes of the index's length
OF_PYC = 16  # bytes before the code in a compiled file of Python's own (PEP 552)


def file_of(folder: str) -> str:
    """Where the code of the package in a folder lies, for this Python."""
    return f"{folder}/__pycache__/code.{sys.implementation.cache_tag}"


def gathered(folder: str) -> bytes:
    """What the file holds: made of the modules below a folder, which are compiled already, each in its own file."""
    from importlib.util import cache_from_source

    index: Index = {}
    codes: list[bytes] = []
    length = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(name for name in names if name.endswith(".py")):
            with open(cache_from_source(f"{place}/{name}"), "rb") as source:
                code = source.read()[OF_PYC:]
            parts = f"{os.path.relpath(place, folder)}/{name[: -len('.py')]}".split("/")
            is_package = parts[-1] == "__init__"
            index[".".join(parts[: -1 if is_package else None])] = (is_package, length, len(code))
            codes.append(code)
            length += len(code)
    head = marshal.dumps(index)
    return b"".join((MAGIC_NUMBER, len(head).to_bytes(SIZE, "little"), head, *codes))


def take(file: str = __file__) -> None:
    """From now on import the modules of this file's package by their code in the one file, where there is one."""
    folder = os.path.dirname(file[: -len(HERE) - 1])
    try:
        source = os.open(file_of(folder), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    before = len(MAGIC_NUMBER) + SIZE
    head = os.pread(source, AT_ONCE, 0)
    end = before + int.from_bytes(head[len(MAGIC_NUMBER) : before], "little")
    if head[: len(MAGIC_NUMBER)] != MAGIC_NUMBER:
        os.close(source)
        return
    index = marshal.loads((head if end <= AT_ONCE else os.pread(source, end, 0))[before:end])
    sys.meta_path.insert(0, _Compiled(folder, source, end, index))


class _Compiled:
    """Finds and loads the modules of the index; `source` is the open file, in which their codes begin at `first`."""

    def __init__(self, folder: str, source: int, first: int, index: Index) -> None:
        self._folder, self._source, self._first, self._index = folder, source, first, index

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module's specification, with the place of its source; None where it is none of these."""
        if name not in self._index:
            return None
        is_package, place = self._index[name][0], f"{self._folder}/{name.replace('.', '/')}"
        origin = f"{place}/__init__.py" if is_package else f"{place}.py"
        spec = ModuleSpec(name, self, origin=origin, is_package=is_package)  # type: ignore[arg-type]
        spec.has_location = True  # so that it has a __file__
        if is_package:
            spec.submodule_search_locations = [place]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: Any) -> None:
        """Run its code."""
        _is_package, at, length = self._index[module.__name__]
        code = marshal.loads(os.pread(self._source, length, self._first + at))
        exec(code, module.__dict__)  # noqa: S102

    def get_data(self, path: str) -> bytes:
        """What a file holds that lies with the package; raises OSError."""
        with open(path, "rb") as source:
            return source.read()
