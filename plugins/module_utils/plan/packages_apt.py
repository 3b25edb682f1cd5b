# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt and dpkg: their command lines, and what they print.

dpkg's selection "hold" stands in dpkg-query's own answer, so one program tells versions and holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..core.errors import StepFailed
from ..core.plan import Answer
from .package_rows import DPKG_FORMAT, Package, asks_dpkg, parse_dpkg
from .packages import Offer, Tool, Wanted

ALL = ("dpkg-query", "--show", "--showformat", DPKG_FORMAT)  # another spelling than the question for some names
LOCK = ("-o", "DPkg::Lock::Timeout=120")  # seconds that it waits for whoever else installs
# As dpkg's own default, and the file as it is where there is none: local edits of configuration files stay.
KEEP = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
CONFIGURE = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")


class Simulation(NamedTuple):
    """What an installation would do: what is installed or changed, by name and new version, what goes, or why not."""

    changed: tuple[tuple[str, str], ...] = ()
    removed: tuple[str, ...] = ()
    problem: str = ""


def render(packages: Iterable[Package]) -> str:
    """The answer of a host that has these packages."""
    return "".join(
        f"{'h' if package.held else 'i'}{'i' if package.whole else 'F'} |{package.name}|{package.version}\n"
        for package in packages
    )


def refresh_one(where: str) -> tuple[str, ...]:
    """Read the repositories of one source file, and leave what is known of the others.

    By itself apt-get exits with 0 when a repository cannot be reached, or when its signature is not good any more and
    an older index of it is there.
    """
    only = ("-o", f"Dir::Etc::SourceList={where}", "-o", "Dir::Etc::SourceParts=/dev/null")
    return (
        "apt-get",
        "-q",
        *LOCK,
        *only,
        "-o",
        "APT::Get::List-Cleanup=0",
        "-o",
        "APT::Update::Error-Mode=any",
        "update",
    )


def offers(names: tuple[str, ...]) -> tuple[str, ...]:
    """Every version of the names in the index."""
    return ("apt-cache", "madison", *names)


def read_offers(text: str) -> list[Offer]:
    """Rows ` name | version | url suite/component arch Packages`; sources are not packages."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 3 and all(parts):
            if not parts[2].endswith("Sources"):
                found.append(Offer(*parts[:2]))
        elif line.strip():
            raise StepFailed(f"apt-cache madison printed a line that is not known: {line!r}", retryable=False)
    return found


def specs(wanted: tuple[Wanted, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    """`name=version`, `name`, and `name-` for what goes."""
    return (*(f"{name}={version}" if version else name for name, version in wanted), *(f"{name}-" for name in gone))


def install(wanted: tuple[Wanted, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    """Install without recommendations and without a question; an exact version may be an older one."""
    options = ("-y", "-q", "--no-install-recommends", "--allow-downgrades", *KEEP, *LOCK)
    return ("apt-get", *options, "install", *specs(wanted, gone))


def asks_simulation(wanted: tuple[Wanted, ...], gone: tuple[str, ...], free: bool) -> tuple[str, ...]:
    """The same on paper. `free`: as if nothing were held, since apt resolves no conflict against a hold."""
    options = ("-s", "-y", "-q", "--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages")
    return ("apt-get", *options, *(("--ignore-hold",) if free else ()), "install", *specs(wanted, gone))


def asks_depends(wanted: tuple[Wanted, ...]) -> tuple[str, ...]:
    """What the packages stand on at their versions."""
    return ("apt-cache", "show", *specs(wanted, ()))


def read_exact(text: str) -> tuple[Wanted, ...]:
    """The packages that are depended on at one exact version, `name (= version)`, without alternatives.

    apt by itself takes the newest of each, and then finds that they do not fit an older package.
    """
    lines = re.findall(r"^(?:Pre-)?Depends: (.*(?:\n .*)*)", text, re.MULTILINE)
    terms = (term.strip() for line in lines for term in line.split(","))
    found = (re.fullmatch(r"([a-z0-9][a-z0-9+.-]+)(?::\w+)? \(= ?([^)\s]+)\)", term) for term in terms)
    return tuple(dict.fromkeys(Wanted(*match.groups()) for match in found if match))


def read_simulation(answer: Answer) -> Simulation:
    """`Inst name [old] (new ...)` and `Remv name ...` lines; when it cannot be, what apt says about it."""
    if answer.rc:
        errors = [line[2:].strip() for line in answer.err.splitlines() if line.startswith("E:")]
        unmet = answer.out.partition("unmet dependencies:")[2]
        why = " ".join(f"{unmet} {' '.join(errors)}".split())
        return Simulation(problem=why[-600:] or f"apt-get exited with {answer.rc}")
    changed = re.findall(r"^Inst (\S+) (?:\[[^\]]*\] )?\((\S+)", answer.out, re.MULTILINE)
    removed = re.findall(r"^(?:Remv|Purg) (\S+)", answer.out, re.MULTILINE)
    return Simulation(
        changed=tuple((name.partition(":")[0], version) for name, version in changed),
        removed=tuple(name.partition(":")[0] for name in removed),
    )


def hold(packages: tuple[Package, ...]) -> tuple[str, ...]:
    """Keep them as they are."""
    return ("apt-mark", "hold", *(package.name for package in packages))


def unhold(packages: tuple[Package, ...]) -> tuple[str, ...]:
    """Let them be changed."""
    return ("apt-mark", "unhold", *(package.name for package in packages))


APT = Tool(
    question=asks_dpkg,
    parse=parse_dpkg,
    render=render,
    refresh=("apt-get", "-q", *LOCK, "update"),
    refresh_one=refresh_one,
    offers=offers,
    read_offers=read_offers,
    install=install,
    hold=hold,
    unhold=unhold,
)
