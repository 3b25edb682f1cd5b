# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg and rpm say of packages, and which manager a host has."""

from __future__ import annotations

from ..core.host import Host
from ..plan.distribution import Distribution
from ..plan.packages import Packages, asks_installed, check_family, read_installed, tool_of
from .os_release import distribution
from .package_database import listed


def packages(host: Host, names: tuple[str, ...], where: str) -> Packages:
    """The snapshot for the named packages (globs are taken). One program is asked.

    Raises Refused for a distribution whose manager we do not know, naming it and the unit `where`.
    """
    seen = distribution(host)
    check_family(seen, where)
    kind = manager(host, seen)
    tool = tool_of(kind)
    if tool.locker:
        names = (*names, tool.locker)
    found = listed(host, asks_installed(kind, names))
    locks = (host.read(tool.lock_file) or "") if tool.lock_file else ""
    return Packages(
        manager=kind,
        distribution=seen,
        names=names,
        installed=read_installed(kind, found, locks),
        journal=_journal(host) if kind == "apt" else (),
        locks=locks,
    )


def manager(host: Host, seen: Distribution) -> str:
    """The package manager of a family; `dnf` is a link to dnf5 where the fifth generation is the system's."""
    if seen.family == "debian":
        return "apt"
    if seen.family == "suse":
        return "zypper"
    return "dnf5" if (host.link("/usr/bin/dnf") or "").rpartition("/")[2] == "dnf5" else "dnf"


def _journal(host: Host) -> tuple[str, ...]:
    """What a dpkg that was killed between two packages left: files with numbers for names, as apt looks for them."""
    from ..plan.packages_apt import JOURNAL

    return tuple(name for name in host.names(JOURNAL) if name.isdigit())
