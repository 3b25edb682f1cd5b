# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet document has of a host beside its units: of a status as it came, of a plan by its facts.

See report.py for what each key says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..module_utils.plan.host_shown import shown, untold
from .shapes import NUMBER, TEXT, TRUTH, ByName, Each, Maybe, maybe

PROCESS = {"pid": NUMBER, "name": TEXT}
PART = {
    "profile": TEXT,
    "gi": NUMBER,
    "ci": NUMBER,
    "start": NUMBER,
    "size": NUMBER,
    "uuid": Maybe(TEXT),
}
GPU = {
    "index": Maybe(NUMBER),
    "uuid": TEXT,
    **{key: Maybe(TEXT) for key in ("pci", "name", "mig_mode", "layout")},
    "slices": Maybe(NUMBER),
    "sharing": Maybe({"mode": TEXT, "replicas": Maybe(NUMBER)}),
    "allocations": Maybe(Each(TEXT)),
    "processes": Maybe(Each(PROCESS)),
    "holders": Maybe(Each({"pid": NUMBER, "program": TEXT})),
    "mig_devices": Maybe(Each(PART)),
}
HOLD = {
    "allocation_id": TEXT,
    "binding": Maybe(TEXT),
    "devices": Each(TEXT),
    "generation": Maybe(NUMBER),
    "releasing": TRUTH,
    "fault": Maybe(TEXT),
}
POOL = {"total": NUMBER, "free": NUMBER, "surplus": NUMBER}
BOTH = {
    "holds": Each(HOLD),
    "numa": Each({"id": NUMBER, "cpus": TEXT, "memory": NUMBER, "hugepages": ByName(POOL)}),
    "kernel": TEXT,
}
# What is read of the fact `bcd`.
FACTS = {
    **BOTH,
    "gpus": Each(GPU),
    "driver": {"loaded": Maybe(TEXT)},
    "reboot_required": TRUTH,
    "reboot_reasons": ByName(TEXT),
}
END = Maybe({"state": TEXT, "message": TEXT})
AGENT = {
    "last": Maybe({"at": Maybe(NUMBER), "host": END, "devices": END}),
    "repairs": Each({"at": NUMBER, "unit": TEXT, "action": TEXT}),
    "fault": Maybe(TEXT),
}
TRUST = {
    "signed": TRUTH,
    "demand": TEXT,
    "pins": {"command_roots": NUMBER, "join_key": TRUTH},
    "node_id": Maybe(TEXT),
    "binding": Maybe(TEXT),
    "generation": Maybe(NUMBER),
    "trust_bundle": Maybe(NUMBER),
    "fault": Maybe(TEXT),
}
# What a status says of itself.
STATUS = {
    **BOTH,
    "reboot": {"required": Maybe(TRUTH), "reasons": ByName(TEXT)},
    "gpus": Each(
        {
            **GPU,
            "mig_devices": Maybe(Each({**PART, "allocation_id": Maybe(TEXT)})),
            "slots": Maybe(Each({"slot": NUMBER, "allocation_id": TEXT})),
        }
    ),
    "driver": TEXT,
    "agent": AGENT,
    "trust": TRUST,
}


def of_facts(result: Mapping[str, Any], fault: str) -> dict[str, Any]:
    """By the result of host_info, {} where it was not asked; `fault`: why it came to nothing, where it did."""
    facts = result.get("ansible_facts")
    given = facts.get("bcd") if isinstance(facts, Mapping) else None
    if not isinstance(given, Mapping):
        return {**dict.fromkeys(STATUS), "unreadable": [f"host_info: {fault}"] if fault else []}
    told = shown({key: maybe(given.get(key), shape) for key, shape in FACTS.items()})
    said = untold(maybe(given.get("unreadable"), Each(TEXT)) or [])
    return {**dict.fromkeys(STATUS), **told, "unreadable": said}


def of_status(result: Mapping[str, Any]) -> dict[str, Any]:
    """By the result of host_status."""
    told = {key: maybe(result.get(key), shape) for key, shape in STATUS.items()}
    return {**told, "unreadable": maybe(result.get("unreadable"), Each(TEXT)) or []}
