# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root pins on a host, and what follows from it, for status and doctor: believed only as far as it verifies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import NotKnownYet, Refused, StepFailed
from ..core.host import Host
from ..look.config import pinned
from ..plan.doctor_seen import FIRST, RECORD, Trust
from ..plan.pins import Pins

if TYPE_CHECKING:
    from ..intent.memory import Memory


def trust(host: Host) -> Trust:
    """Raises NotKnownYet for what this account may not see."""
    from ..intent import memory as kept
    from ..look.config import root_text

    try:
        pins = pinned(host)
    except Refused as fault:
        return Trust(fault=fault.message)
    told = Trust(len(pins.roots), bool(pins.join_key), library=has_library())
    try:
        record = root_text(host, kept.RECORD)
        memory = kept.parse(root_text(host, kept.MEMORY))
        told = _remembered(told, pins, memory)
        if not pins:
            return told
        if not told.library:  # nothing verifies, and what is pinned demands a signature all the same
            return told._replace(demand="a pin in root's config.toml demands")
        return _verified(told, pins, record, memory)
    except (Refused, StepFailed) as fault:
        return told._replace(fault=fault.message)


def _remembered(told: Trust, pins: Pins, memory: Memory) -> Trust:
    """With what earlier specs left. A bundle counts while the key that signed it is pinned."""
    bundle = memory.bundle_version if memory.bundle_key == pins.join_key else -1
    binding = FIRST if memory.node_id else ""
    return told._replace(node_id=memory.node_id, binding=binding, generation=memory.generation, bundle=bundle)


def _verified(told: Trust, pins: Pins, record: str | None, memory: Memory) -> Trust:
    from ..intent.acceptance import demand, recorded

    response = recorded(pins, record)
    if response is not None:
        node = response.node_id
        generation = told.generation if told.node_id in ("", node) else -1  # as another node it starts over
        told = told._replace(node_id=node, binding=RECORD, generation=generation)
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
