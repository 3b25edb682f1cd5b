# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocations that have GPUs of this host, as root's own files say.

What cannot be made out counts as holding every GPU: a GPU in use is never taken for a free one.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable

from ..core.errors import Unreadable
from ..core.host import Host
from ..core.state import STATE
from ..plan.gpu import Hold

CDI = "/etc/cdi"
SPEC = re.compile(r"bcd-(.+)\.json", re.DOTALL)  # whatever a name holds: it is no reason to pass a hold over
RECORDS = f"{STATE}/holds"
RECORD = re.compile(r"([^.].*)\.json", re.DOTALL)
RELEASING = f"{STATE}/releasing.json"
LOST_RELEASES = f"{STATE}/releasing.unreadable"  # a marker: the file could not be read, and was moved away
PENDING = "(pending Kubernetes releases that could not be read)"
DEVICE = re.compile(r"GPU-[^/\s]+(?:/gi\d+/ci\d+|/s\d+)?|MIG-\S+")
EVERY = "every GPU counts as held: look at it, and repair or remove it"

Devices = Callable[[Any], "tuple[str, ...] | None"]


def holds(host: Host) -> tuple[Hold, ...]:
    """The live holds by allocation: of each its CDI spec and root's record, either of which is a hold by itself."""
    found: dict[str, Hold] = {}
    for folder, pattern, devices in ((CDI, SPEC, spec_devices), (RECORDS, RECORD, record_devices)):
        for name in host.names(folder):
            named = pattern.fullmatch(name)
            if named:
                hold = _hold(host, f"{folder}/{name}", named.group(1), devices)
                found[hold.allocation] = _merged(found.get(hold.allocation, hold), hold)
    return tuple(found[allocation] for allocation in sorted(found))


def releasing(host: Host) -> tuple[Hold, ...]:
    """Releases that still wait for their pods: `{"version": 1, "releases": {"<allocation>": {"devices": [...]}}}`.

    A file that cannot be made out, and the marker of one that was lost, is one release that has every GPU.
    """
    if host.exists(LOST_RELEASES):
        return (Hold(PENDING, fault=f"{LOST_RELEASES} is there, and {EVERY}"),)
    record, fault = _record(host, RELEASING)
    if record is None and not fault:
        return ()
    pending = record.get("releases") if isinstance(record, dict) else None
    if not isinstance(pending, dict):
        return (Hold(PENDING, fault=fault or f"{RELEASING} is no record of releases, and {EVERY}"),)
    found = {name: record_devices(entry) for name, entry in pending.items()}
    return tuple(
        Hold(name, found[name] or (), "" if found[name] else f"{RELEASING} names no device of it, and {EVERY}")
        for name in sorted(found)
    )


def spec_devices(spec: Any) -> tuple[str, ...] | None:
    """The devices of a hold's CDI spec; None when it is none.

    A device's id is its annotation, or, where a runtime takes no annotations, its name, which has "_" for "/".
    """
    devices = spec.get("devices") if isinstance(spec, dict) and spec.get("kind") == "bcd.dev/gpu" else None
    ids = []
    for device in devices if isinstance(devices, list) else ():
        if not isinstance(device, dict):
            return None
        annotations = device.get("annotations")
        named = annotations.get("bcd.dev/device-id") if isinstance(annotations, dict) else None
        ids.append(named if named is not None else str(device.get("name")).replace("_", "/"))
    return _known(ids)


def record_devices(record: Any) -> tuple[str, ...] | None:
    """The devices of a record, ids or mappings with an `id`; None when it has none."""
    devices = record.get("devices") if isinstance(record, dict) else None
    if not isinstance(devices, list):
        return None
    return _known([device.get("id") if isinstance(device, dict) else device for device in devices])


def _known(ids: list[Any]) -> tuple[str, ...] | None:
    """The ids when there are any and each is one of a device."""
    return tuple(ids) if ids and all(isinstance(name, str) and DEVICE.fullmatch(name) for name in ids) else None


def _hold(host: Host, path: str, allocation: str, devices: Devices) -> Hold:
    record, fault = _record(host, path)
    if record is None and not fault:
        target = host.link(path)
        why = "went while it was looked at" if target is None else f"is a link to {target}, where nothing is"
        return Hold(allocation, fault=f"{path} {why}, and {EVERY}")
    found = None if fault else devices(record)
    return Hold(
        allocation, found or (), fault or ("" if found else f"{path} names no device that is known, and {EVERY}")
    )


def _record(host: Host, path: str) -> tuple[Any, str]:
    """What a JSON file holds, None when it is absent, and why it cannot be made out."""
    try:
        text = host.read(path)
    except Unreadable as fault:
        if fault.denied and host.uid() != 0:  # root sees it: nothing is known here
            raise
        return None, f"{fault.message}, and {EVERY}"
    if text is None:
        return None, ""
    try:
        return json.loads(text), ""
    except (ValueError, RecursionError):
        return None, f"{path} is no JSON, and {EVERY}"


def _merged(one: Hold, other: Hold) -> Hold:
    """What spec and record say together."""
    return Hold(one.allocation, tuple(dict.fromkeys((*one.devices, *other.devices))), one.fault or other.fault)
