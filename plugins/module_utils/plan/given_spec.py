# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hold's CDI specification and env file that another account made, judged before root puts them where runtimes read.

A runtime does as root what a specification says. So each edit has to be one of root's own vendor specifications, word
for word, or one of those that a hold of ours adds: nothing else on the host comes into a container by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import StepFailed
from . import cdi
from .assignment import OUR_KEYS
from .atoms import is_slot, parent
from .gpu_sharing_service import PIPE
from .hold_edits import ORDER, merged, within
from .hold_spec import ALLOCATION_ID, MPS_MOUNTS, NOTHING, OF_DEVICE, VISIBLE, device_name
from .holds import DEVICE_ID, KIND, spec_devices
from .slices import name as slice_name
from .strict_json import parse, short


class Vendors(NamedTuple):
    """What root's own specifications have: the texts of their edits by kind, and the names of their devices."""

    edits: Mapping[str, frozenset[str]]
    devices: frozenset[str]


def vendors(specs: Sequence[tuple[str, Any]]) -> Vendors:
    """Of the sound specifications on this host, each with its path."""
    found: dict[str, set[str]] = {kind: set() for kind in ORDER}
    names: set[str] = set()
    for path, spec in specs:
        names.update(cdi.device_names(spec))
        layers = (spec.get("containerEdits") or {}, *(device["containerEdits"] for device in spec["devices"]))
        for layer in layers:
            for ceiling in (None, *cdi.VERSIONS):  # a hold of ours says an edit as a ceiling lets it
                _collect(found, layer, ceiling, path)
    return Vendors({kind: frozenset(texts) for kind, texts in found.items()}, frozenset(names))


def _collect(found: dict[str, set[str]], layer: Mapping[str, Any], ceiling: str | None, path: str) -> None:
    try:
        edits = within(merged(layer), ceiling, path)
    except StepFailed:  # that ceiling does not let it be said
        return
    for kind, elements in edits.items():
        found[kind].update(map(_text, [elements] if kind == "intelRdt" else elements))


def spec_fault(allocation: str, text: str, known: Vendors) -> str:
    """Why a text is no specification of this hold that may be put in place, a clause; "" where it may."""
    try:
        spec = parse(text.encode())
    except ValueError as fault:
        return f"it is no JSON, read strictly ({fault})"
    faults = cdi.faults(spec)
    if faults:
        return f"runtimes would not take it ({short(faults[0])})"
    if spec["kind"] != KIND:
        return f"its kind is {short(spec['kind'])}, and not {KIND}"
    atoms = spec_devices(spec)
    if atoms is None:
        return "it has a device that is none of GPUs"
    for device, atom in zip(spec["devices"], atoms):
        if device["name"] != device_name(atom):
            return f"its device {short(device['name'])} has another id ({DEVICE_ID})"
    named = spec.get("annotations", {}).get(ALLOCATION_ID, allocation)
    if named != allocation:
        return f"its annotation {ALLOCATION_ID} names another allocation"
    return _edits_fault(allocation, spec, atoms, known)


def _edits_fault(allocation: str, spec: Mapping[str, Any], atoms: Sequence[str], known: Vendors) -> str:
    ours = {_text(mount) for mount in MPS_MOUNTS} if any(map(is_slot, atoms)) else set()
    for edits in (spec.get("containerEdits", {}), *(device["containerEdits"] for device in spec["devices"])):
        for kind, elements in edits.items():
            for element in [elements] if kind == "intelRdt" else elements:
                if _text(element) in known.edits[kind] or (kind == "mounts" and _text(element) in ours):
                    continue
                if kind == "env" and _is_ours(element, allocation, atoms, known):
                    continue
                return f"its {kind} have {short(_text(element))}, which no vendor's specification on this host has"
    return ""


def _is_ours(line: str, allocation: str, atoms: Sequence[str], known: Vendors) -> bool:
    """Whether a variable is one that a hold of these devices sets."""
    key, _equals, value = line.partition("=")
    if key == VISIBLE:
        return all(uuid in atoms or uuid in map(parent, atoms) or _is_mig(uuid, known) for uuid in value.split(","))
    if key == OF_DEVICE:
        return value in atoms
    return key in OUR_KEYS and value == _value(key, allocation)


def _is_mig(uuid: str, known: Vendors) -> bool:
    """Whether it is a MIG device's UUID that the vendor's specification knows: an id of ours does not tell it."""
    return uuid.startswith("MIG-") and uuid in known.devices


def _value(key: str, allocation: str) -> str | None:
    """What a variable of ours is for the hold of this allocation; None for one that says something else."""
    return {
        "BCD_ALLOCATION_ID": allocation,
        "BCD_CGROUP_PARENT": slice_name(allocation),
        "CUDA_MPS_PIPE_DIRECTORY": PIPE,
    }.get(key)


def env_fault(allocation: str, text: str) -> str:
    """Why a text is no env file of this hold, a clause that shows no value; "" where it is one."""
    lines = text.split("\n")
    if lines.pop():
        return "its last line does not end"
    keys = [line.partition("=")[0] for line in lines]
    for number, (line, key) in enumerate(zip(lines, keys), 1):
        if "=" not in line or not key.isidentifier() or not key.isascii() or not line.isprintable():
            return f"its line {number} is no KEY=VALUE"
        value = line.partition("=")[2]
        if key in OUR_KEYS and keys.count(key) > 1:
            return f"it sets {key} twice"
        wanted = _value(key, allocation)
        if wanted is not None and value != wanted:
            return f"its {key} is not {wanted}"
        if key == VISIBLE and not all(
            uuid.startswith(("GPU-", "MIG-")) or uuid == NOTHING for uuid in value.split(",")
        ):
            return f"its {VISIBLE} names something else than devices by their UUIDs"
    if f"BCD_ALLOCATION_ID={allocation}" not in lines:
        return f"it does not set BCD_ALLOCATION_ID to {allocation}"
    return ""


def _text(element: Any) -> str:
    """By which two edits are told apart."""
    return json.dumps(element, sort_keys=True)
