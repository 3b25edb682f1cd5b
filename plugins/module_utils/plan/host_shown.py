# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a status and the fleet's report show of a host beside its units, made of the facts of host_info.

A host makes it for its status, the controller for the report of a plan: who has which MIG device and which slot is
decided here, once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .atoms import mig_device

KEYS = ("reboot", "gpus", "holds", "numa", "kernel", "driver")
OF_GPU = (
    "index", "uuid", "pci", "name", "mig_mode", "layout", "slices", "sharing", "allocations", "processes", "holders",
)  # fmt: skip
SLOT = re.compile(r"(?P<gpu>[^/]+)/s(?P<slot>[0-9]{1,9})")
# How the sentence on a fact begins, or on a part of one.
OURS = re.compile(r"(?:gpus|holds|numa|kernel|driver|reboot_required|reboot_reasons)[\[.:]")

Facts = Mapping[str, Any]


def shown(facts: Facts) -> dict[str, Any]:
    """The KEYS; what the facts do not tell is None.

    `reboot` is as of the last pass of this boot, {"required", "reasons"}; `gpus` has every GPU with its MIG devices and
    slots, and who holds each; `driver` is the version that is loaded.
    """
    return {
        "reboot": _reboot(facts),
        "gpus": _gpus(facts),
        "holds": facts["holds"],
        "numa": facts["numa"],
        "kernel": facts["kernel"],
        "driver": None if facts["driver"] is None else facts["driver"]["loaded"],
    }


def untold(unreadable: list[str]) -> list[str]:
    """Of the sentences on facts that could not be read, those on what is shown."""
    return [sentence for sentence in unreadable if OURS.match(sentence)]


def _reboot(facts: Facts) -> dict[str, Any] | None:
    if facts["reboot_required"] is None or facts["reboot_reasons"] is None:
        return None
    return {"required": facts["reboot_required"], "reasons": facts["reboot_reasons"]}


def _gpus(facts: Facts) -> list[dict[str, Any]] | None:
    if facts["gpus"] is None:
        return None
    holders = {
        device: hold["allocation_id"]
        for hold in facts["holds"] or ()
        if not hold["fault"]
        for device in hold["devices"]
    }
    return [
        {
            **{key: gpu[key] for key in OF_GPU},
            "mig_devices": _parts(gpu, holders),
            "slots": None if facts["holds"] is None else _slots(gpu, holders),
        }
        for gpu in facts["gpus"]
    ]


def _parts(gpu: Facts, holders: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """The MIG devices, each with the allocation that has it by its instances."""
    if gpu["mig_devices"] is None:
        return None
    return [
        {**part, "allocation_id": holders.get(mig_device(gpu["uuid"], part["gi"], part["ci"]))}
        for part in gpu["mig_devices"]
    ]


def _slots(gpu: Facts, holders: Mapping[str, str]) -> list[dict[str, Any]]:
    """The slots that are held; how many more there are is for who assigns them to say."""
    found = ((SLOT.fullmatch(device), allocation) for device, allocation in holders.items())
    mine = sorted((int(slot["slot"]), who) for slot, who in found if slot and slot["gpu"] == gpu["uuid"])
    return [{"slot": number, "allocation_id": allocation} for number, allocation in mine]
