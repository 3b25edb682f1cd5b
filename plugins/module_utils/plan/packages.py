# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages as values: what the index offers, what is wanted, and how each manager is spoken to.

What a look saw is in `packages_seen`. The steps that change packages are in `packages_install`, what an index offers is
asked by `packages_index`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

from ..core.errors import Refused
from ..core.plan import Past, Todo
from .debts import debt
from .distribution import Distribution
from .package_rows import Package
from .packages_seen import Packages, newest


class Offer(NamedTuple):
    """A package that the index offers."""

    name: str
    version: str


class Wanted(NamedTuple):
    """A package to be installed, at one exact version of the manager's own spelling, or at any ("")."""

    name: str
    version: str = ""


class Verdict(NamedTuple):
    """What installing would do beside the wanted packages: what changes, at its new version, and what goes; or why it
    may not be. `along` are packages that have to be named at the versions on which the wanted ones stand."""

    changed: tuple[Package, ...] = ()
    removed: tuple[str, ...] = ()
    problem: str = ""
    along: tuple[Wanted, ...] = ()


def check_family(distribution: Distribution, where: str) -> None:
    """Refuse a distribution whose package manager we do not know. `where`: the unit that needs packages."""
    if not distribution.family:
        raise Refused(
            f"{where}: packages cannot be installed on {distribution.id!r} (ID of /etc/os-release): install them by "
            "hand, or use a distribution of the Debian, Red Hat or SUSE family"
        )
    if not distribution.is_known:
        raise Refused(f"{where}: of Amazon Linux only 2023 is known, not {distribution.version}: use that")


class Tool(NamedTuple):
    """How one package manager is spoken to; the functions are pure.

    `question` asks for what is installed of some names, `parse` and `render` read and write its answer. `offers` asks
    the index, `read_offers` reads that answer; `nothing` are exit statuses that mean that nothing was found.
    `lock_file` is where holds are, "" where they are in the answer itself; `locked` says whether its text holds a
    package, `lock` and `unlock` are the text with packages held or not (for check mode).
    """

    question: Callable[[tuple[str, ...]], tuple[str, ...]]
    parse: Callable[[str], list[Package]]
    render: Callable[[Iterable[Package]], str]
    refresh: tuple[str, ...]
    offers: Callable[[tuple[str, ...]], tuple[str, ...]]
    read_offers: Callable[[str], list[Offer]]
    install: Callable[[tuple[Wanted, ...], tuple[str, ...]], tuple[str, ...]]
    hold: Callable[[tuple[Package, ...]], tuple[str, ...]]
    unhold: Callable[[tuple[Package, ...]], tuple[str, ...]]
    installed_ok: tuple[int, ...] = (0,)
    every: tuple[str, ...] = ()  # of `offers`: what streams and locks keep away is told too
    nothing: tuple[int, ...] = (0,)
    refresh_one: Callable[[str], tuple[str, ...]] = lambda where: ()  # fails when this repository is not refreshed
    lift: Callable[[str], tuple[str, ...]] = lambda repository: ()  # options: as if it excluded no package
    lock_file: str = ""
    locked: Callable[[str, Package], bool] = lambda text, package: package.held
    lock: Callable[[str, tuple[Package, ...]], str] = lambda text, packages: text
    unlock: Callable[[str, tuple[Package, ...]], str] = lambda text, packages: text
    locker: str = ""  # a package without which nothing can be held


def tool_of(manager: str) -> Tool:
    """The tool of a manager's name."""
    if manager == "apt":
        from .packages_apt import APT

        return APT
    if manager == "zypper":
        from .packages_zypper import ZYPPER

        return ZYPPER
    from .packages_dnf import DNF, DNF5

    return DNF5 if manager == "dnf5" else DNF


def asks_installed(manager: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The question for what is installed of the names."""
    return tool_of(manager).question(names)


def read_installed(manager: str, text: str, locks: str) -> dict[str, Package]:
    """Its answer, by name; of several versions of one package, as a kernel's, the newest."""
    tool = tool_of(manager)
    found = newest(tool.parse(text))
    return {name: package._replace(held=tool.locked(locks, package)) for name, package in found.items()}


# -- what is to be as it is


def is_there(now: Packages, wanted: Wanted) -> bool:
    """Whether a wanted package is installed whole, at its version where it has one."""
    found = now.installed.get(wanted.name)
    return found is not None and found.whole and wanted.version in ("", found.version)


def settle_holds(
    todo: Todo, now: Packages, past: Past, names: tuple[str, ...], hold: bool, pays: tuple[str, ...] = ()
) -> None:
    """Plan that the named packages, where installed, are held, or, without `hold`, only what a killed pass owes.

    Where something is planned, it `pays`.
    """
    due = tuple(
        name
        for name, package in now.installed.items()
        if not package.held and ((hold and name in names) or debt("hold", name) in past.owed)
    )
    if due:
        from .packages_install import hold_again

        hold_again(todo, now, due, pays)


# -- versions


def version_key(version: str) -> tuple[Any, ...]:
    """A key that sorts versions of one package: its epoch, then numbers as numbers."""
    epoch, _colon, rest = version.rpartition(":")
    words = re.findall(r"\d+|[A-Za-z]+|~", rest)
    places = [(-1, 0, "") if word == "~" else (1, int(word), "") if word.isdigit() else (0, 0, word) for word in words]
    return (int(epoch or 0), [*places, (-1, 1, "")])  # the end comes behind a tilde and before all else


def listed(wanted: Iterable[Wanted]) -> str:
    """For a sentence: "nvidia-open 580.95.05-1 and dkms"."""
    words = [f"{name} {version}".strip() for name, version in wanted]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
