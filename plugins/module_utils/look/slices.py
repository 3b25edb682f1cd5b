# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slices of holds: which there are, whether something runs in them, and the limits that the kernel shows."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import NotKnownYet, StepFailed
from ..core.host import Host
from ..plan.devices_seen import Slice
from ..plan.slices import ASKS, AVAILABLE, CONTROL, FILES, NAME, PARENT, TREE


def slices(host: Host) -> Mapping[str, Slice]:
    """Every slice of ours by its allocation: those with a cgroup, and those of which systemd still keeps properties.

    systemd is asked once for all of them, and not at all where there is none.
    """
    cgroups = _allocations(host, PARENT, "")
    kept = _allocations(host, CONTROL, ".d")
    active = _active(host) if cgroups else frozenset()
    return {
        allocation: _slice(host, allocation, allocation in kept, active)
        if allocation in cgroups
        else Slice(drop_ins=True)
        for allocation in sorted(cgroups | kept)
    }


def controllers(host: Host) -> Mapping[str, str]:
    """What this host's cgroup v2 offers and what is enabled down to our slices: texts by path, without absent ones."""
    paths = (AVAILABLE, *(f"{place}/cgroup.subtree_control" for place in TREE))
    shown = {path: host.read(path) for path in paths}
    return {path: text for path, text in shown.items() if text is not None}


def is_populated(text: str | None) -> bool:
    """Whether a cgroup.events tells of a process in the cgroup or below it; what says nothing of it counts as one."""
    return text is not None and "populated 0" not in text.splitlines()


def _allocations(host: Host, place: str, suffix: str) -> frozenset[str]:
    """The allocations of what lies there under a slice's name."""
    named = (NAME.fullmatch(found.removesuffix(suffix)) for found in host.names(place) if found.endswith(suffix))
    return frozenset(found.group(1) for found in named if found)


def _active(host: Host) -> frozenset[str] | None:
    """The slices that systemd has running, by name; None where only a step will tell, so that the cgroups do."""
    try:
        answer = host.ask(ASKS)
    except NotKnownYet:
        return None
    if answer.rc:
        said = " ".join(f"{answer.out} {answer.err}".split()) or "nothing"
        raise StepFailed(f"{' '.join(ASKS)} exited with {answer.rc} and said {said}: see that systemd answers")
    return frozenset(line.split(maxsplit=1)[0] for line in answer.out.splitlines() if line.strip())


def _slice(host: Host, allocation: str, drop_ins: bool, active: frozenset[str] | None) -> Slice:
    name = f"bcd-alloc-{allocation}.slice"
    place = f"{PARENT}/{name}"
    return Slice(
        active=active is None or name in active,
        populated=is_populated(host.read(f"{place}/cgroup.events")),
        files={file: host.read(f"{place}/{file}") for file in FILES},
        drop_ins=drop_ins,
    )
