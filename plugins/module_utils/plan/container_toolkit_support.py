# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the runtimes read the specification's version of CDI. Imported only for one that not all of them read."""

from __future__ import annotations

from .cdi_support import highest, reads
from .container_runtime import PROGRAMS
from .container_toolkit_config import OUTPUT
from .program_version import release_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.plan import Past, Todo


def note(todo: Todo, version: str, programs: Mapping[str, str], past: Past) -> None:
    """Name the runtimes that are too old for the specification's version, which its content decides.

    `programs` are the paths of the programs of those that are to read it.
    """
    for name, path in programs.items():
        follows = () if name == "podman" else (path,)  # podman reads its files before it says it
        said = past.ask((PROGRAMS[name], "--version"), follows=follows)
        if said.rc:  # that it failed follows from no file
            said = past.ask((PROGRAMS[name], "--version"))
        release = release_in(said.out)
        if release and not reads(name, release, version):
            todo.note(
                f"{OUTPUT} is of CDI {version}, and this {name} {'.'.join(map(str, release))} reads "
                f"{highest(name, release) or 'none'} at most: it finds no device there: install a newer one"
            )
