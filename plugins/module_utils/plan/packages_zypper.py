# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zypper and rpm: command lines, what they print, and locks."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from ..core.errors import StepFailed
from .package_rows import Package
from .package_rows_rpm import asks_rpm, parse_rpm
from .packages import Offer, Tool, Wanted
from .packages_dnf import render

LOCKS = "/etc/zypp/locks"
QUIET = ("zypper", "--non-interactive")
NOTHING_FOUND = 104  # ZYPPER_EXIT_INF_CAP_NOT_FOUND
INSTALLED = (0, 102, 103)  # done; done, and a reboot or a restart of zypper itself is advised


def offers(names: tuple[str, ...]) -> tuple[str, ...]:
    """Every version of the names in the index as it is, as XML."""
    search = ("search", "--details", "--match-exact", "--type", "package")
    return (*QUIET, "--no-refresh", "--xmlout", *search, *names)


def read_offers(text: str) -> list[Offer]:
    """`<solvable status= name= kind= edition= arch= repository=/>`; what no repository has any more is not offered."""
    found = []
    for element in re.findall(r"<solvable\s([^>]*?)/?>", text):
        given = dict(re.findall(r"""([\w-]+)=["']([^"']*)["']""", element))
        if not {"name", "edition"} <= given.keys():
            raise StepFailed(f"zypper search printed an element that is not known: {element!r}", retryable=False)
        if given.get("kind", "package") == "package" and given.get("repository") != "(System Packages)":
            found.append(Offer(given["name"], given["edition"]))
    return found


def install(wanted: tuple[Wanted, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    """Install without recommendations, an older version too; NVIDIA's packages ask for their licence."""
    options = ("--auto-agree-with-licenses", "--no-recommends", "--oldpackage")
    specs = (f"{name}={version}" if version else name for name, version in wanted)
    return (*QUIET, "install", *options, *specs, *(f"!{name}" for name in gone))


def hold(packages: tuple[Package, ...]) -> tuple[str, ...]:
    """Lock them as they are."""
    return (*QUIET, "addlock", *(package.name for package in packages))


def unhold(packages: tuple[Package, ...]) -> tuple[str, ...]:
    """Take their locks off."""
    return (*QUIET, "removelock", *(package.name for package in packages))


def _fields(entry: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+):[ \t]*(.*?)\s*$", entry, re.MULTILINE))


def locked(text: str, package: Package) -> bool:
    """/etc/zypp/locks: entries of `key: value` lines, parted by empty ones; `solvable_name` may be a glob."""
    for entry in map(_fields, re.split(r"\n\s*\n", text)):
        if entry.get("type", "package") == "package" and fnmatchcase(package.name, entry.get("solvable_name", "")):
            return True
    return False


def lock(text: str, packages: tuple[Package, ...]) -> str:
    """The locks with these packages."""
    return text + "".join(
        f"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {package.name}\n"
        for package in packages
    )


def unlock(text: str, packages: tuple[Package, ...]) -> str:
    """The locks without those of these names."""
    names = {package.name for package in packages}
    kept = [entry for entry in re.split(r"\n\s*\n", text) if _fields(entry).get("solvable_name") not in names]
    return "\n\n".join(kept)


ZYPPER = Tool(
    question=asks_rpm,
    parse=parse_rpm,
    render=render,
    refresh=(*QUIET, "refresh"),
    offers=offers,
    read_offers=read_offers,
    install=install,
    hold=hold,
    unhold=unhold,
    installed_ok=INSTALLED,
    nothing=(0, NOTHING_FOUND),
    lock_file=LOCKS,
    locked=locked,
    lock=lock,
    unlock=unlock,
)
