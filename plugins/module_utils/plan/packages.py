# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages as values: what is installed and held, what the index offers, and the steps that change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect
from .distribution import Distribution

REFRESHED = "the package index is refreshed"  # a clause: what is not offered now is known after it


class Package(NamedTuple):
    """An installed package. `version` is the manager's own, "580.95.05-0ubuntu0.24.04.1" or "3:580.95.05-1.el9".

    `held`: the manager will not change it by itself. `whole` is false when a killed dpkg left it half configured.
    """

    name: str
    version: str
    held: bool = False
    whole: bool = True


class Offer(NamedTuple):
    """A package that the index offers, and from where: a URL with its suite, or a repository's name."""

    name: str
    version: str
    origin: str = ""


class Wanted(NamedTuple):
    """A package to be installed, at one exact version of the manager's own spelling, or at any ("")."""

    name: str
    version: str = ""


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


def upstream(version: str) -> str:
    """NVIDIA's own version in a package's: "3:580.95.05-1.el9" is 580.95.05, and so is "580.95.05_k6.4.0_1-lp156"."""
    raise NotImplementedError


def refresh(todo: Todo, now: Packages, past: Past) -> str:
    """Plan the refresh of the package index when it is older than ten minutes; call it when something is to be installed.

    Returns "" when the index is fresh, else REFRESHED: what the index does not offer now is then known after it (see
    `not_offered`). Behind the step the runner looks and plans again.
    """
    raise NotImplementedError


def offers(now: Packages, past: Past, names: tuple[str, ...]) -> tuple[Offer, ...]:
    """What the index offers of the named packages, newest first of each; asks the manager."""
    raise NotImplementedError


def not_offered(todo: Todo, action: str, message: str, refreshed: str) -> None:
    """Say that a package is not offered: a failed step with the message, or what is known after the refresh.

    `refreshed` is what `refresh` returned.
    """
    raise NotImplementedError


def install(
    todo: Todo,
    now: Packages,
    past: Past,
    wanted: tuple[Wanted, ...],
    *,
    hold: bool = False,
    may_go: tuple[str, ...] = (),
    instead_of: tuple[str, ...] = (),
    effects: tuple[Effect, ...] = (),
    disruption: str = "none",
    owes: tuple[str, ...] = (),
) -> bool:
    """Plan that the packages are installed, in one transaction, and held; whether an installation was planned.

    Ours that are held are unheld first and held again after, which is a debt. `may_go`: globs of packages that the
    transaction may remove (apt; anything else is a failed step, found by simulation). `instead_of`: packages to be
    removed in the same transaction, where they are installed. `effects` and `owes` are of the installing step, whose
    effects also hold what the look of `now` then sees. Refused on a system whose packages come with its image.
    """
    raise NotImplementedError


def settle_holds(todo: Todo, now: Packages, past: Past, names: tuple[str, ...], hold: bool) -> None:
    """Plan that the named packages, where installed, are held, or, without `hold`, only what a killed pass owes."""
    raise NotImplementedError
