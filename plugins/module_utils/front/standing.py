# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root pins on a host, and what follows from it, for status and doctor: believed only as far as it verifies."""

from __future__ import annotations

import json
from typing import Any

from ..core.errors import NotKnownYet, Refused, StepFailed
from ..core.host import Host
from ..look.config import pinned
from ..plan.doctor_seen import FIRST, RECORD, Trust
from ..plan.pins import Pins


def trust(host: Host) -> Trust:
    """Raises NotKnownYet for what this account may not see."""
    from ..intent import memory as kept

    try:
        pins = pinned(host)
    except Refused as fault:
        return Trust(fault=fault.message)
    library = has_library()
    told = Trust(len(pins.roots), bool(pins.join_key), library=library)
    record = host.read(kept.RECORD)
    try:
        memory = kept.parse(host.read(kept.MEMORY))
    except StepFailed as fault:
        return told._replace(fault=fault.message)
    told = told._replace(node_id=memory.node_id, generation=memory.generation, bundle=memory.bundle_version)
    if memory.node_id:
        told = told._replace(binding=FIRST)
    if not pins or not library:  # without cryptography a pin demands a signature all the same, and none verifies
        return told._replace(demand="a pin in root's config.toml demands" if pins else "")
    try:
        return _verified(told, pins, record, memory)
    except Refused as fault:
        return told._replace(fault=fault.message)


def _verified(told: Trust, pins: Pins, record: str | None, memory: Any) -> Trust:
    from ..intent.acceptance import demand, join_record

    if record is not None:
        try:
            value = json.loads(record)
        except (ValueError, RecursionError):
            value = None  # which is no join record, and refused as such
        told = told._replace(node_id=join_record(value, pins).node_id, binding=RECORD)
    return told._replace(demand=demand(pins, record, memory))


def has_library() -> bool:
    """Whether this Python has cryptography, which takes a tenth of a second to import: it is only looked for."""
    from importlib.util import find_spec

    return find_spec("cryptography") is not None


def seen(host: Host) -> dict[str, Any] | None:
    """The same as keys of a result; None where this account may not see it."""
    try:
        it = trust(host)
    except NotKnownYet:
        return None
    return {
        "signed": bool(it.demand),
        "demand": it.demand and f"{it.demand} a signed spec",
        "pins": {"command_roots": it.roots, "join_key": it.join_key},
        "node_id": it.node_id or None,
        "binding": {RECORD: "join record", FIRST: "first accepted spec"}.get(it.binding),
        "generation": it.generation if it.generation >= 0 else None,
        "trust_bundle": it.bundle if it.bundle >= 0 else None,
        "fault": it.fault or None,
    }
