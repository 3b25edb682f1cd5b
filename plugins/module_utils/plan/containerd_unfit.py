# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of containerd that no drop-in can extend, and drop-ins that hide what others say."""

from __future__ import annotations

from ..core.errors import Refused
from . import toml
from .containerd_merge import NEW_CRI, OLD_CRI
from .containerd_seen import CONFIG, CTK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.plan import Todo
    from .containerd_merge import Table
    from .containerd_seen import Containerd


def refuse_version(unit: str, main: Table, instead: str) -> None:
    """Refuse a file of version 1; one that says nothing of plugins is of every version."""
    version = main.get("version", 1)
    if "version" in main or {"plugins", "disabled_plugins", "required_plugins"} & main.keys():
        raise Refused(
            f"{unit}: {CONFIG} is of version {version}, which no drop-in can extend: convert it (containerd config "
            f"migrate prints it in a later version){instead}"
        )


def note_hidden(todo: Todo, now: Containerd) -> None:
    """Name nvidia-ctk's drop-in where it is the last to have the CRI plugin's table, which replaces the others'."""
    names = having(now)
    if len(names) > 1 and names[-1].endswith(f"/{CTK}"):
        todo.note(
            f"{names[-1]}, which nvidia-ctk runtime configure wrote, replaces what {', '.join(names[:-1])} says "
            "of the CRI plugin: remove it, and the next pass carries what they say"
        )


def having(now: Containerd) -> list[str]:
    """The drop-ins of others that have a table of the CRI plugin, in the order of reading."""
    names = {OLD_CRI, NEW_CRI}
    return [one.path for one in now.read if names & toml.parse(one.text, one.path).get("plugins", {}).keys()]
