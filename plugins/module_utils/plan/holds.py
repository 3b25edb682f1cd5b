# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocations that have GPUs of this host: where root keeps them, what the files say, and whose GPUs they have.

What cannot be made out counts as holding every GPU: a GPU in use is never taken for a free one.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, NamedTuple

from ..core.state import STATE, VERSION
from .atoms import is_atom, is_slot, parent
from .gpu_listed import Listed

KIND = "bcd.dev/gpu"  # of our CDI specifications
DEVICE_ID = "bcd.dev/device-id"  # the annotation
CDI = "/etc/cdi"
SPEC = re.compile(r"bcd-(.+)\.json", re.DOTALL)  # whatever a name holds: it is no reason to pass a hold over
RECORDS = f"{STATE}/holds"
RECORD = re.compile(r"([^.].*)\.json", re.DOTALL)
RELEASING = f"{STATE}/releasing.json"
LOST_RELEASES = f"{STATE}/releasing.unreadable"  # a marker: the file could not be read, and was moved away
PENDING = "(pending Kubernetes releases that could not be read)"
EVERY = "every GPU counts as held: look at it, and repair or remove it"

Devices = Callable[[Any], "tuple[str, ...] | None"]


class Hold(NamedTuple):
    """An allocation that has devices of this host, by their ids (see plan.atoms), or whose release still waits.

    A hold whose file cannot be made out has a sentence on it in `fault`, and counts as holding every GPU.
    """

    allocation: str
    devices: tuple[str, ...] = ()
    fault: str = ""


# -- the files


def hold_in(path: str, text: str, allocation: str, devices: Devices) -> Hold:
    """The hold in the text of its file; `devices` is `spec_devices` or `record_devices`."""
    try:
        found = devices(json.loads(text))
    except (ValueError, RecursionError):
        return Hold(allocation, fault=f"{path} is no JSON, and {EVERY}")
    return Hold(allocation, found or (), "" if found else f"{path} names no device that is known, and {EVERY}")


def releases_in(text: str) -> tuple[Hold, ...]:
    """Releases that still wait for their pods: `{"version": 1, "releases": {"<allocation>": {"devices": [...]}}}`.

    A text that cannot be made out is one release that has every GPU.
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return (Hold(PENDING, fault=f"{RELEASING} is no JSON, and {EVERY}"),)
    pending = record.get("releases") if isinstance(record, dict) and record.get("version") == VERSION else None
    if not isinstance(pending, dict):
        return (Hold(PENDING, fault=f"{RELEASING} is no record of releases, and {EVERY}"),)
    found = {name: record_devices(entry) for name, entry in pending.items()}
    return tuple(
        Hold(name, found[name] or (), "" if found[name] else f"{RELEASING} names no device of it, and {EVERY}")
        for name in sorted(found)
    )


def spec_devices(spec: Any) -> tuple[str, ...] | None:
    """The devices of a hold's CDI spec; None when it is none.

    A device's id is its annotation, or, where a runtime takes no annotations, its name, which has "_" for "/".
    """
    devices = spec.get("devices") if isinstance(spec, dict) and spec.get("kind") == KIND else None
    ids = []
    for device in devices if isinstance(devices, list) else ():
        if not isinstance(device, dict):
            return None
        annotations = device.get("annotations")
        named = annotations.get(DEVICE_ID) if isinstance(annotations, dict) else None
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
    return tuple(ids) if ids and all(map(is_atom, ids)) else None


def merged(one: Hold, other: Hold) -> Hold:
    """What an allocation's spec and its record say together."""
    return Hold(one.allocation, tuple(dict.fromkeys((*one.devices, *other.devices))), one.fault or other.fault)


# -- whose GPUs


def resolved(hold: Hold, listed: tuple[Listed, ...]) -> Hold:
    """The hold with the GPUs of MIG UUIDs that the listing knows; it cannot say which compute instance each is."""
    parents = {device.uuid: gpu.uuid for gpu in listed for device in gpu.devices}
    return hold._replace(devices=tuple(parents.get(device, device) for device in hold.devices))


def has(hold: Hold, gpu: str) -> bool:
    """Whether the hold has the GPU of this UUID, or a part of it; what cannot be made out has every GPU."""
    parents = [parent(device) for device in hold.devices]
    return bool(hold.fault) or any(found is None or found.lower() == gpu.lower() for found in parents)


def has_slots_only(hold: Hold) -> bool:
    """Whether all that the hold has is slots, which is what the MPS daemon is for."""
    return not hold.fault and all(map(is_slot, hold.devices))


def claim(hold: Hold) -> str:
    """The hold in a sentence on what is busy: "the allocation alloc_1 has GPU-...", or what is wrong with its file."""
    return hold.fault or f"the allocation {hold.allocation} has {', '.join(hold.devices)}"
