# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt would do, asked on paper before anything is done: what it takes away, and whose holds it breaks."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ..core.errors import NotKnownYet
from ..core.plan import Past
from .package_rows import Package, parse_dpkg
from .packages import Verdict, Wanted, listed
from .packages_apt import ALL, Simulation, asks_depends, asks_simulation, read_exact, read_simulation


def simulated(past: Past, due: tuple[Wanted, ...], gone: tuple[str, ...], may_go: tuple[str, ...]) -> Verdict:
    """What installing `due` and taking `gone` away would do; `may_go` are globs of what else it may touch.

    First as things are; then as if nothing were held; then with the exact versions of what the packages stand on.
    """
    along: tuple[Wanted, ...] = ()
    seen = Simulation()
    try:
        everything = {package.name: package for package in parse_dpkg(past.ask(ALL).out)}
        for named, free in ((False, False), (False, True), (True, False), (True, True)):
            if named and not free:
                along = _stands_on(past, due, everything)
            if named and not along:
                break
            seen = read_simulation(past.ask(asks_simulation((*due, *along), gone, free)))
            if not seen.problem:
                break
    except NotKnownYet:  # it stands on a step that has not been taken: apt itself says what it cannot do
        return Verdict()
    if seen.problem:
        return Verdict(problem=f"apt cannot install {listed(due)}: {seen.problem}")
    ours = (*gone, *may_go)
    foreign = [name for name in seen.removed if not _is_ours(name, ours)]
    if foreign:
        return Verdict(
            problem=f"installing {listed(due)} would take away {', '.join(foreign)}: take them away by hand if they "
            "may go, or mend the package sources"
        )
    wanted = {want.name for want in due}
    held = [name for name, _version in seen.changed if name in everything and everything[name].held]
    foreign = [name for name in held if name not in wanted and not _is_ours(name, ours)]
    if foreign:
        return Verdict(
            problem=f"installing {listed(due)} would change {', '.join(foreign)}, which another hand holds: "
            f"take that hold off (apt-mark unhold {' '.join(foreign)})"
        )
    changed = tuple(Package(name, version) for name, version in seen.changed if name not in wanted)
    return Verdict(changed, seen.removed, along=along)


def _stands_on(past: Past, due: tuple[Wanted, ...], everything: Mapping[str, Package]) -> tuple[Wanted, ...]:
    """What has to be there at exact versions under packages of exact versions, to the ground, and is not."""
    found: dict[str, Wanted] = {}
    level = tuple(want for want in due if want.version)
    while level:
        below = read_exact(past.ask(asks_depends(level)).out)
        level = tuple(want for want in below if want.name not in found and want not in due)
        found.update({want.name: want for want in level})
    have = {name: package.version for name, package in everything.items()}
    return tuple(want for want in found.values() if have.get(want.name) != want.version)


def _is_ours(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
