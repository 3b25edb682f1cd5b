# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where rpm's database lies, and which of SQLite's logs are ahead of it."""

from __future__ import annotations

from ..core.host import Host

# Where distributions have it, in each of its formats: of Berkeley DB, of rpm's own, of SQLite.
FOLDERS = ("/var/lib/rpm", "/usr/lib/sysimage/rpm", "/usr/share/rpm")
FILES = tuple(
    f"{folder}/{name}" for folder in FOLDERS for name in ("Packages", "Packages.db", "Index.db", "rpmdb.sqlite")
)
LOG = "rpmdb.sqlite-wal"
SIZE = 2  # where a stamp has it


def logs(host: Host) -> list[str]:
    """The logs that have something in them: a sight, since root's rpm touches an empty one at each question, or makes
    it.
    """
    found = ((path, host.stamp(path)) for path in (f"{folder}/{LOG}" for folder in FOLDERS))
    return [path for path, stamp in found if stamp is not None and stamp[SIZE]]
