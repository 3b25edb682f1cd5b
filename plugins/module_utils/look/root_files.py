# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that decide what root does, believed only where no other account could have put them there."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.host import Host
from .config import MEND, only_roots


def root_text(host: Host, path: str) -> str | None:
    """The text of a file of root's own, None when it is absent.

    Raises Refused for a file that is another's, a symbolic link or open to others' writing, and for a directory above
    it that is: who can write there can put another file, or none, in its place.
    """
    above = path
    while above:
        above = above.rpartition("/")[0]
        folder = host.file(above or "/")
        if folder is not None and not only_roots(folder):
            raise Refused(
                f"{above or '/'} is not a directory only root can write, and {path} decides what root does: {MEND}"
            )
    seen = host.file(path)
    if seen is None:
        return None
    if not seen.regular or not only_roots(seen):
        raise Refused(f"{path} must be a regular file root owns that no one else can write")
    return seen.text
