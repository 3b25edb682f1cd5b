# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocations that have GPUs of this host, as root's own files say (plan.holds has their forms)."""

from __future__ import annotations

from ..core.errors import Unreadable
from ..core.host import Host
from ..plan.holds import (
    CDI,
    EVERY,
    LOST_RELEASES,
    PENDING,
    RECORD,
    RECORDS,
    RELEASING,
    SPEC,
    Devices,
    Hold,
    hold_in,
    merged,
    record_devices,
    releases_in,
    spec_devices,
)


def holds(host: Host) -> tuple[Hold, ...]:
    """The live holds by allocation: of each its CDI spec and root's record, either of which is a hold by itself."""
    found: dict[str, Hold] = {}
    for folder, pattern, devices in ((CDI, SPEC, spec_devices), (RECORDS, RECORD, record_devices)):
        for name in host.names(folder):
            named = pattern.fullmatch(name)
            if named:
                hold = _hold(host, f"{folder}/{name}", named.group(1), devices)
                found[hold.allocation] = merged(found.get(hold.allocation, hold), hold)
    return tuple(found[allocation] for allocation in sorted(found))


def releasing(host: Host) -> tuple[Hold, ...]:
    """Releases that still wait for their pods; a file that is lost or cannot be read is one that has every GPU."""
    if host.exists(LOST_RELEASES):
        return (Hold(PENDING, fault=f"{LOST_RELEASES} is there, and {EVERY}"),)
    text, fault = _text(host, RELEASING)
    if fault:
        return (Hold(PENDING, fault=fault),)
    return () if text is None else releases_in(text)


def _hold(host: Host, path: str, allocation: str, devices: Devices) -> Hold:
    text, fault = _text(host, path)
    if fault:
        return Hold(allocation, fault=fault)
    if text is None:
        target = host.link(path)
        why = "went while it was looked at" if target is None else f"is a link to {target}, where nothing is"
        return Hold(allocation, fault=f"{path} {why}, and {EVERY}")
    return hold_in(path, text, allocation, devices)


def _text(host: Host, path: str) -> tuple[str | None, str]:
    """The text of a file, None when it is absent, and why it cannot be read."""
    try:
        return host.read(path), ""
    except Unreadable as fault:
        if fault.denied and host.uid() != 0:  # root sees it: nothing is known here
            raise
        return None, f"{fault.message}, and {EVERY}"
