# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of an assignment against what the host has: which of them are there, and what the driver calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..core.errors import NotReady, StepFailed
from .assignment import Device
from .devices_seen import Card

GPU, MIG, SLOT = "gpu", "gpu.mig", "gpu.slot"  # classes
NUMBER = r"(0|[1-9][0-9]{0,8})"  # one spelling a number: two ids are never one device
MIG_ID = re.compile(rf"([^/]+)/gi{NUMBER}/ci{NUMBER}")
SLOT_ID = re.compile(rf"([^/]+)/s{NUMBER}")
UNSUPPORTED, MISSING = "unsupported-device", "device-missing"


class Resolved(NamedTuple):
    """A device that is there: its GPU's UUID, and the UUID by which the driver shows it, of the GPU or a MIG device."""

    device: Device
    gpu: str
    visible: str


class Failure(NamedTuple):
    """Why an assignment cannot be honoured, in the words of its AllocationFailed."""

    reason: str
    message: str


def by_uuid(cards: Sequence[Card]) -> Mapping[str, Card]:
    """The GPUs by UUID; raises what `cards` does while nvidia-smi does not answer."""
    return {card.uuid: card for card in cards}


def unsupported(devices: Sequence[Device]) -> Failure | None:
    """The first device of a class that cannot be held, or whose id is none of its class."""
    for device in devices:
        if device.device_class not in (GPU, MIG, SLOT):
            return Failure(UNSUPPORTED, f"device class {device.device_class} cannot be held")
        if device.device_class == MIG and not MIG_ID.fullmatch(device.id):
            return Failure(UNSUPPORTED, f'"{device.id}" is not a MIG instance id (<gpu>/gi<g>/ci<c>)')
        if device.device_class == SLOT and not SLOT_ID.fullmatch(device.id):
            return Failure(UNSUPPORTED, f'"{device.id}" is not a slot id (<gpu>/s<k>)')
    return None


def resolve(
    devices: Sequence[Device], cards: Mapping[str, Card], slots: int | None = None
) -> tuple[Resolved, ...] | Failure:
    """Each device as it is on this host, whose GPUs are `cards` by UUID, each with `slots` slots where it is shared.

    Without `slots` any slot is there, as for a hold that has it. All are checked for what cannot be held before any for
    what is missing, of which every one is named. Raises NotReady for a GPU that does not answer now: it is not missing.
    """
    wrong = unsupported(devices)
    if wrong:
        return wrong
    found = [_found(device, cards, slots) for device in devices]
    missing = dict.fromkeys(one for one in found if isinstance(one, str))
    if missing:
        return Failure(MISSING, "; ".join(missing))
    return tuple(one for one in found if isinstance(one, Resolved))


def _found(device: Device, cards: Mapping[str, Card], slots: int | None) -> Resolved | str:
    """The device, or the sentence that it is missing."""
    uuid = device.id if device.device_class == GPU else device.id.partition("/")[0]
    card = cards.get(uuid)
    if card is None:
        return f"{uuid} not present"
    if card.fault:
        raise NotReady(card.fault)
    if device.device_class == MIG:
        return _mig(device, card)
    if device.device_class == SLOT:
        slot = device.id.partition("/")[2]
        if slots is not None and int(slot[1:]) >= slots:
            return f"{uuid} has no slot {slot}: this host has {slots} a GPU"
    return Resolved(device, uuid, uuid)


def _mig(device: Device, card: Card) -> Resolved | str:
    named = MIG_ID.fullmatch(device.id)
    try:
        visible = card.mig.get((int(named.group(2)), int(named.group(3)))) if named else None
    except StepFailed as fault:
        raise NotReady(fault.message) from None
    if not visible:
        return f"{card.uuid} has no MIG instance {device.id.partition('/')[2]}"
    return Resolved(device, card.uuid, visible)
