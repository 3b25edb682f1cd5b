# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg-query and rpm say of installed packages: it follows from their databases."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host

# The second of dpkg's has what a package manager that runs, or was killed, has not merged into the first yet; those of
# triggers, which states wait for one.
DPKG = tuple(
    f"/var/lib/dpkg/{name}" for name in ("status", "updates", "arch", "triggers", "triggers/File", "triggers/Unincorp")
)


def listed(host: Host, argv: tuple[str, ...]) -> str:
    """What `dpkg-query` or `rpm` prints; raises StepFailed where it cannot tell."""
    database = DPKG if argv[0] == "dpkg-query" else _of_rpm(host)
    if any(host.exists(path) for path in database):
        answer = host.follows(argv, (host.which(argv[0]) or argv[0], *database))
    else:  # nobody knows where it is: then nothing tells that it is the same
        answer = host.ask(argv)
    # 1: dpkg-query does not know one of the names; or rpm could not read its database, which follows from no file.
    if answer.rc not in (0, 1) or (answer.rc and "error:" in answer.err):
        said = " ".join((answer.err or answer.out).split())
        raise StepFailed(f"{argv[0]} cannot tell what is installed: it exited with {answer.rc}: {said}")
    return answer.out


def _of_rpm(host: Host) -> tuple[str, ...]:
    from . import rpm_database

    return (*rpm_database.FILES, *host.sight(rpm_database.logs))
