# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg and rpm say of packages, and which manager a host has."""

from __future__ import annotations

from ..core.host import Host
from ..plan.package_rows import JOURNAL, asks_dpkg, parse_dpkg
from ..plan.packages_seen import Packages, newest
from .os_release import distribution
from .package_database import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..plan.distribution import Distribution


def packages(host: Host, names: tuple[str, ...], where: str) -> Packages:
    """The snapshot for the named packages (globs are taken). One program is asked.

    Raises Refused for a distribution whose manager we do not know, naming it and the unit `where`.
    """
    seen = distribution(host)
    if not seen.is_known:
        from ..plan.packages import check_family

        check_family(seen, where)
    kind = manager(host, seen)
    if kind != "apt":
        return _with_holds(host, Packages(kind, seen, names))
    return Packages(kind, seen, names, newest(parse_dpkg(listed(host, asks_dpkg(names)))), _journal(host))


def _with_holds(host: Host, asked: Packages) -> Packages:
    """The snapshot where a manager keeps holds in a file of its own, or by a package of its own."""
    from ..plan.packages import asks_installed, read_installed, tool_of

    tool = tool_of(asked.manager)
    names = (*asked.names, tool.locker) if tool.locker else asked.names
    found = listed(host, asks_installed(asked.manager, names))
    locks = (host.read(tool.lock_file) or "") if tool.lock_file else ""
    return asked._replace(names=names, installed=read_installed(asked.manager, found, locks), locks=locks)


def manager(host: Host, seen: Distribution) -> str:
    """The package manager of a family; `dnf` is a link to dnf5 where the fifth generation is the system's."""
    if seen.family == "debian":
        return "apt"
    if seen.family == "suse":
        return "zypper"
    return "dnf5" if (host.link("/usr/bin/dnf") or "").rpartition("/")[2] == "dnf5" else "dnf"


def _journal(host: Host) -> tuple[str, ...]:
    """What a dpkg that was killed between two packages left: files with numbers for names, as apt looks for them."""
    return tuple(name for name in host.names(JOURNAL) if name.isdigit())
