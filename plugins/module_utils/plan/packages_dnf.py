# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dnf, of the fourth and the fifth generation, and rpm: command lines, what they print, locks, and module streams."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..core.errors import StepFailed
from .package_rows import Package
from .package_rows_rpm import asks_rpm, parse_rpm, plain
from .packages import Offer, Tool, Wanted

# The fourth generation ends each row by itself, so that its answer has empty lines; the fifth does not.
OFFER_FORMAT = "%{name}|%{epoch}:%{version}-%{release}|%{repoid}\n"
LIST = "/etc/dnf/plugins/versionlock.list"
TOML = "/etc/dnf/versionlock.toml"
LOCKER = "python3-dnf-plugin-versionlock"  # the fifth generation has it built in


# A lock hides every other version from a query.
ALL_VERSIONS = ("--disableplugin=versionlock",)
ALL_VERSIONS5 = ("--setopt=disable_excludes=*",)
EVERY_STREAM = ("--disable-modular-filtering",)


class Stream(NamedTuple):
    """A stream of a module, as `dnf module list` marks it: [d] the default, [e] enabled, [x] disabled."""

    name: str
    default: bool = False
    enabled: bool = False
    disabled: bool = False


def with_epoch(version: str) -> str:
    """A version with its epoch, 0 where it has none."""
    return version if ":" in version else f"0:{version}"


def render(packages: Iterable[Package]) -> str:
    """The answer of a host that has these packages."""
    return "".join(f"{package.name}|{with_epoch(package.version)}\n" for package in packages)


def refresh_one(where: str) -> tuple[str, ...]:
    """Read one repository, and fail where it cannot be read, whatever the host's configuration says of that."""
    return ("dnf", "-y", f"--repo={where}", f"--setopt={where}.skip_if_unavailable=False", "makecache", "--refresh")


def lift(repository: str) -> tuple[str, ...]:
    """The fourth generation's option."""
    return (f"--disableexcludes={repository}",)


def lift5(repository: str) -> tuple[str, ...]:
    """The fifth's, which knows the other no more."""
    return (f"--setopt=disable_excludes={repository}",)


def offers(names: tuple[str, ...]) -> tuple[str, ...]:
    """Every version of the names in the index as it is."""
    return ("dnf", "-q", "-C", *ALL_VERSIONS, "repoquery", "--showduplicates", "--queryformat", OFFER_FORMAT, *names)


def offers5(names: tuple[str, ...]) -> tuple[str, ...]:
    """The same of the fifth generation."""
    return ("dnf", "-q", "-C", *ALL_VERSIONS5, "repoquery", "--showduplicates", "--queryformat", OFFER_FORMAT, *names)


def read_offers(text: str) -> list[Offer]:
    """Rows `name|epoch:version-release|repository`."""
    found = []
    for line in text.splitlines():
        row = re.fullmatch(r"([^|\s]+)\|(\d+:[^|\s]+)\|\S*", line.strip())
        if row:
            found.append(Offer(row.group(1), plain(row.group(2))))
        elif line.strip():
            raise StepFailed(f"dnf repoquery printed a line that is not known: {line!r}", retryable=False)
    return found


def spec(name: str, version: str) -> str:
    """`name-epoch:version-release`, or the bare name for any version."""
    return f"{name}-{version}" if version else name


def install(wanted: tuple[Wanted, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    """Install without weak dependencies; an installed package changes to a named version, an older one too.

    What goes conflicts with what comes, and nothing else is erased.
    """
    erase = ("--allowerasing",) if gone else ()
    return (
        "dnf",
        "-y",
        "--setopt=install_weak_deps=False",
        "install",
        *erase,
        *(spec(name, version) for name, version in wanted),
    )


def hold(packages: tuple[Package, ...]) -> tuple[str, ...]:
    """Lock them at the versions that they have."""
    return ("dnf", "-y", "versionlock", "add", *(spec(package.name, package.version) for package in packages))


def unhold(packages: tuple[Package, ...]) -> tuple[str, ...]:
    """Delete the locks of the names."""
    return ("dnf", "-y", "versionlock", "delete", *(package.name for package in packages))


# -- locks


def locked(text: str, package: Package) -> bool:
    """versionlock.list: a line is `name-epoch:version-release.*`, or any such glob; one with `!` keeps out."""
    full = f"{package.name}-{with_epoch(package.version)}"
    lines = (line.strip() for line in text.splitlines() if not line.startswith("#"))
    return any(line and (line == package.name or fnmatchcase(f"{full}.any", line)) for line in lines)


def lock(text: str, packages: tuple[Package, ...]) -> str:
    """The list with these packages locked."""
    added = "".join(f"{package.name}-{with_epoch(package.version)}.*\n" for package in packages)
    return text + added


def unlock(text: str, packages: tuple[Package, ...]) -> str:
    """The list without the locks of these names."""
    names = {package.name for package in packages}
    kept = [line for line in text.splitlines() if re.sub(r"-\d+:.*", "", line.strip()) not in names]
    return "".join(f"{line}\n" for line in kept)


_ENTRY = re.compile(r"^\[\[packages\]\]\s*$", re.MULTILINE)


def _entries(text: str) -> list[str]:
    """The tables [[packages]] of versionlock.toml, what stands before the first as the first."""
    return _ENTRY.split(text)


def _value(table: str, key: str) -> str:
    found = re.search(rf"""^\s*{key}\s*=\s*["']([^"']*)["']""", table, re.MULTILINE)
    return found.group(1) if found else ""


def locked5(text: str, package: Package) -> bool:
    """versionlock.toml: a table of the name whose condition is that evr equals the version; 0 is the epoch unsaid."""
    for table in _entries(text)[1:]:
        is_of_it = _value(table, "name") == package.name and _value(table, "key") == "evr"
        if is_of_it and _value(table, "comparator") == "=" and plain(_value(table, "value")) == package.version:
            return True
    return False


def lock5(text: str, packages: tuple[Package, ...]) -> str:
    """The document with these packages locked."""
    head = text or 'version = "1.0"\n'
    return head + "".join(
        f'\n[[packages]]\nname = "{package.name}"\n[[packages.conditions]]\nkey = "evr"\ncomparator = "="\n'
        f'value = "{package.version}"\n'
        for package in packages
    )


def unlock5(text: str, packages: tuple[Package, ...]) -> str:
    """The document without the locks of these names."""
    names = {package.name for package in packages}
    head, *tables = _entries(text)
    return head + "".join(f"[[packages]]{table}" for table in tables if _value(table, "name") not in names)


# -- module streams


def asks_streams(module: str) -> tuple[str, ...]:
    """The streams of a module in the index as it is; exits with 1 where there are none."""
    return ("dnf", "-q", "-C", "module", "list", module)


def parse_streams(module: str, text: str) -> tuple[Stream, ...]:
    """Rows `name  stream [d][e]  profiles  summary` under headings; the last line explains the marks."""
    found = {}
    for line in text.splitlines():
        row = re.match(rf"{re.escape(module)}\s+(\S+)((?:\s*\[[dexai]\])*)(?:\s|$)", line)
        if row:
            marks = row.group(2)
            found[row.group(1)] = Stream(row.group(1), "[d]" in marks, "[e]" in marks, "[x]" in marks)
    return tuple(found.values())


def render_streams(module: str, streams: Iterable[Stream]) -> str:
    """The listing of a host that has these streams (for check mode)."""
    marks = ((" [d]", "default"), (" [e]", "enabled"), (" [x]", "disabled"))
    return "".join(
        f"{module} {stream.name}{''.join(mark for mark, field in marks if getattr(stream, field))} default \n"
        for stream in streams
    )


DNF = Tool(
    question=asks_rpm,
    parse=parse_rpm,
    render=render,
    refresh=("dnf", "-y", "makecache", "--refresh"),
    refresh_one=refresh_one,
    lift=lift,
    offers=offers,
    read_offers=read_offers,
    install=install,
    hold=hold,
    unhold=unhold,
    every=EVERY_STREAM,
    lock_file=LIST,
    locked=locked,
    lock=lock,
    unlock=unlock,
    locker=LOCKER,
)
DNF5 = DNF._replace(
    offers=offers5, lift=lift5, every=(), lock_file=TOML, locked=locked5, lock=lock5, unlock=unlock5, locker=""
)
