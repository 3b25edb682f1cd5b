# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages as a look saw them, and what is to become of them: all that a host needs on which none is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .package_rows import Package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    from .distribution import Distribution
else:
    from ..core.named import NamedTuple


class Packages(NamedTuple):
    """What a look saw of the packages that it was asked for. `manager` is "apt", "dnf", "dnf5" or "zypper".

    `names` are names, or globs such as "nvidia-*"; `installed` has those of them that are installed, by name. `journal`
    are the files that a killed dpkg left; `locks` is the text of rpm's lock file.
    """

    manager: str
    distribution: Distribution
    names: tuple[str, ...] = ()
    installed: Mapping[str, Package] = {}
    journal: tuple[str, ...] = ()
    locks: str = ""

    def version(self, name: str) -> str:
        """The version of an installed package, "" when it is not installed."""
        return self.installed[name].version if name in self.installed else ""


class Work(NamedTuple):
    """What is to become of packages. `planned`: their installation is planned; `stuck`: they cannot be as they should,
    which the plan says. Neither: they are there."""

    planned: bool = False
    stuck: bool = False


def newest(packages: Iterable[Package]) -> dict[str, Package]:
    """By name; of several versions of one package, as a kernel's, the newest."""
    found: dict[str, Package] = {}
    for package in packages:
        known = found.setdefault(package.name, package)
        if known.version != package.version:
            from .packages import version_key

            found[package.name] = max(known, package, key=lambda one: version_key(one.version))
    return found
