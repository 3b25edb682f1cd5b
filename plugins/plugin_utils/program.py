# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program bcd: the collection's own module_utils as one zip, which Python runs.

The same sources make the same bytes: names are sorted, times and modes are fixed, and nothing is compressed, since
builds of zlib differ.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from typing import NamedTuple

from ..module_utils.plan.release import VERSION

PACKAGE = "bcd"
SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "module_utils")
OF_ANSIBLE = ("front/module.py",)  # a host has no Ansible
FIRST_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip knows
REGULAR_FILE = 0o100644
UNIX = 3
# Any Python can read this far and say what it lacks.
MAIN = """import sys

if sys.version_info < (3, 9):
    sys.exit("bcd: Python 3.9 or newer is needed, and this is %d.%d: run it with another" % sys.version_info[:2])

from bcd.front.cli import main

sys.exit(main(sys.argv[1:]))
"""


class Program(NamedTuple):
    """The zip's bytes, and the version of the collection that it was made of."""

    version: str
    data: bytes

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{PACKAGE}-{self.version}.pyz"

    @property
    def sha256(self) -> str:
        """The digest of the bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()


def program(sources: str = SOURCES) -> Program:
    """The program made of the module_utils in a directory, this collection's own."""
    return of_parts(parts(sources))


def of_parts(files: dict[str, bytes]) -> Program:
    """The program made of the files of its package."""
    return Program(VERSION, _zipped({"__main__.py": MAIN.encode(), **files}))


def parts(sources: str = SOURCES) -> dict[str, bytes]:
    """The files of its package by their paths, "bcd/front/cli.py"."""
    return {f"{PACKAGE}/{name}": _read(os.path.join(sources, name)) for name in _names(sources)}


def _names(sources: str) -> list[str]:
    found = [
        os.path.relpath(os.path.join(folder, name), sources).replace(os.sep, "/")
        for folder, _folders, names in os.walk(sources)
        for name in names
        if name.endswith(".py")
    ]
    return [name for name in found if name not in OF_ANSIBLE]


def _read(path: str) -> bytes:
    with open(path, "rb") as source:
        return source.read()


def _zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, FIRST_TIME)
            entry.create_system = UNIX
            entry.external_attr = REGULAR_FILE << 16
            archive.writestr(entry, files[name])
    return out.getvalue()
