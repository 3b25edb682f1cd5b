# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the program bcd on a host where it is not installed: its code comes on the standard input (see carried.py).

The host's Python reads this text from there and runs it. Nothing is written to the disk: each part is compiled when it
is imported. What is left on the input is the program's own. Any Python 3 gets as far as saying that it is too old.
"""

from __future__ import annotations

import sys
import zlib
from _frozen_importlib import ModuleSpec  # what importlib.machinery has, without all that this imports

OLDEST = (3, 9)
TOO_OLD = 96  # status
ABOVE = "carried/"  # in the names of its files, where a folder would be


class Carried:
    """Finds and loads modules in memory: `parts` has the text of each file, compressed, by its path."""

    def __init__(self, parts: dict[str, bytes]) -> None:
        self.parts = parts

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module's specification; None where it is none of these."""
        place = name.replace(".", "/")
        for file, is_package in ((place + ".py", False), (place + "/__init__.py", True)):
            if file in self.parts:
                spec = ModuleSpec(name, self, origin=ABOVE + file, is_package=is_package)  # type: ignore[arg-type]
                spec.has_location = True  # so that it has a __file__
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: object) -> None:
        """Run its code."""
        file = module.__file__  # type: ignore[attr-defined]
        exec(compile(self.get_data(file), file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102

    def get_data(self, path: str) -> bytes:
        """What a file holds; raises OSError where there is none."""
        if path[: len(ABOVE)] != ABOVE or path[len(ABOVE) :] not in self.parts:
            raise FileNotFoundError(path)
        return zlib.decompress(self.parts[path[len(ABOVE) :]])


def read(source: object) -> dict[str, bytes]:
    """The parts: a line with their count, a line with path and length for each, then what they hold, in this order."""
    lines = source.readline  # type: ignore[attr-defined]
    entries = [lines().split() for _part in range(int(lines()))]
    return {name.decode(): source.read(int(length)) for name, length in entries}  # type: ignore[attr-defined]


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.stdin.buffer.read()  # to ssh, an input that is closed before its end is a host that cannot be reached
        sys.exit(TOO_OLD)
    sys.meta_path.insert(0, Carried(read(sys.stdin.buffer)))
