# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of Kubernetes holds: recorded, then withdrawn, and reported once no pod has a device of theirs.

`releasing.json` is `{"version": 1, "releases": {"<allocation>": {"devices": [{"id", "device_class"}], "generation",
"since", "asked"}}}`. Of one that cannot be made out nothing is known, so that every GPU of the host is claimed until
no pod has a GPU of an allocation that is not known here (plan.holds says so to every other unit).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..core.plan import Todo
from ..core.state import VERSION
from ..core.state import render as record
from ..core.step import Effect, Step, remove, run, write
from .assignment import ALLOCATION, KUBERNETES, Assignment, Device
from .atoms import is_atom
from .devices_seen import Held, Now, Release
from .holds import LOST_RELEASES, RELEASING

STUCK = 300  # seconds


class Turn(NamedTuple):
    """What becomes of the pending releases in one plan."""

    free: tuple[Release, ...] = ()  # to be reported: no pod has a device of theirs
    back: tuple[Release, ...] = ()  # wanted again: dropped unreported
    waiting: tuple[Release, ...] = ()


# -- the file


def parse(text: str) -> tuple[Release, ...]:
    """The releases in the text of the file, by allocation; raises ValueError when any of it cannot be made out."""
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise ValueError(f"it is of the version {found['version']!r}")
        return tuple(_release(allocation, entry) for allocation, entry in sorted(found["releases"].items()))
    except (KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise ValueError(f"it is not of the form that is known ({type(fault).__name__}: {fault})") from None


def _release(allocation: str, entry: Mapping[str, Any]) -> Release:
    devices = tuple(
        Device(device["id"], device.get("device_class", "gpu")) if isinstance(device, dict) else Device(device)
        for device in entry["devices"]
    )
    numbers = [entry.get(name, 0) for name in ("generation", "since", "asked")]
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in numbers)
    named = all(is_atom(device.id) and isinstance(device.device_class, str) for device in devices)
    if not (ALLOCATION.fullmatch(allocation) and devices and whole and named):
        raise ValueError(f"the release of {allocation!r} is not of the form that is known")
    return Release(allocation, devices, *numbers)


def rewrite(releases: Iterable[Release]) -> Step:
    """The step that leaves these releases pending, and no others; the file goes with the last of them."""
    pending = {release.allocation: release for release in releases}
    if not pending:
        return remove(RELEASING, "forget the Kubernetes releases, none of which is pending any more")
    entries = {
        allocation: {
            "devices": [device._asdict() for device in release.devices],
            "generation": release.generation,
            "since": release.since,
            "asked": release.asked,
        }
        for allocation, release in sorted(pending.items())
    }
    names = ", ".join(entries)
    return write(
        RELEASING, record({"releases": entries}), f"record the pending Kubernetes releases ({names})", mode=0o600
    )


def release(held: Held, time: int) -> Release:
    """The release of a hold, asked for at this Unix time."""
    return Release(held.allocation, held.devices, held.generation, held.since, time)


# -- the decisions


def report(now: Now, wanted: Mapping[str, Assignment]) -> Turn:
    """What becomes of the pending releases; `wanted` are the section's assignments by allocation.

    A release is taken back when its allocation is wanted with all of its devices, for Kubernetes. Wanted with others,
    it waits for its pods as any does, since they may have what is not wanted any more: until then its allocation is
    not bound.
    """
    free, back, waiting = [], [], []
    for pending in now.releases:
        assignment = wanted.get(pending.allocation)
        if assignment is not None and _takes_back(assignment, pending):
            back.append(pending)
        elif any(now.pods.get(device.id, "it was not asked") for device in pending.devices):
            waiting.append(pending)
        else:
            free.append(pending)
    return Turn(tuple(free), tuple(back), tuple(waiting))


def _takes_back(assignment: Assignment, pending: Release) -> bool:
    wanted = {device.id for device in assignment.devices}
    return assignment.binding == KUBERNETES and all(device.id in wanted for device in pending.devices)


def quarantine(todo: Todo, now: Now) -> bool:
    """Move a releases file that cannot be read out of the way; whether that is due. What is released waits for it.

    The marker is there before the file goes, and the file's copy before the marker: wherever a pass dies, every GPU
    stays claimed and nothing is lost. A file of which not even the bytes can be read is moved as it is.
    """
    if not now.unread_releases:
        return False
    kept = f"{RELEASING}.unreadable-{now.time}"
    if now.releases_text is not None:
        todo.add(write(kept, now.releases_text, f"keep what {RELEASING} holds, which cannot be made out", mode=0o600))
    if not now.lost_releases:
        text = f"{now.unread_releases}. It is kept as {kept}.\n"
        todo.add(write(LOST_RELEASES, text, "mark the pending Kubernetes releases as lost", mode=0o600))
    if now.releases_text is not None:
        todo.add(remove(RELEASING, f"remove {RELEASING}, which is kept as {kept}"))
    else:
        effects = (Effect("gone", RELEASING), Effect("file", kept))
        todo.add(run(("mv", RELEASING, kept), f"move {RELEASING}, which cannot be read, to {kept}", effects=effects))
    return True


def settle_lost(todo: Todo, now: Now) -> None:
    """Remove the marker of lost releases once no pod has a GPU of an allocation that is not known here."""
    if now.lost_releases and not now.unread_releases and not now.strangers:
        todo.add(remove(LOST_RELEASES, "claim no more than is known: no pod has a GPU of releases that were lost"))


def conditions(todo: Todo, now: Now, waiting: Iterable[Release]) -> None:
    """Report what lasts: releases that have waited for more than five minutes, and a releases file that was lost."""
    stuck = [_stuck(pending, now) for pending in waiting if now.time - pending.asked > STUCK]
    if stuck:
        todo.condition("KubernetesReleaseStuck", "PodsHoldDevices", "; ".join(stuck))
    if now.lost_releases or now.unread_releases:
        todo.condition("KubernetesReleasesUnreadable", "ReleasesFileUnreadable", _lost(now))


def _stuck(pending: Release, now: Now) -> str:
    by_holder: dict[str, list[str]] = {}
    for device in pending.devices:
        who = now.pods.get(device.id, "it was not asked")
        if who:
            by_holder.setdefault(who, []).append(device.id)
    held = ", ".join(f"{', '.join(ids)} ({who})" for who, ids in by_holder.items())
    return (
        f"{pending.allocation} was released more than {STUCK // 60} minutes ago and keeps its claim on {held}: delete "
        "the pods that hold it, or mend what keeps that from being known"
    )


def _lost(now: Now) -> str:
    if now.unread_releases:
        return f"{now.unread_releases}, and every GPU counts as claimed until no pod has a GPU that is not known here"
    return (
        f"{LOST_RELEASES} is there since {RELEASING} could not be read, and every GPU counts as claimed"
        f"{f' while {now.strangers}' if now.strangers else ''}: delete the pods of released allocations, or remove the "
        "marker when they have no GPU"
    )
