# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's record of a hold, `/var/lib/bcd-hostconfig/holds/<allocation>.json`: all of it, where a CDI spec tells a part.

A runtime may take no annotations, and then the spec says less than a hold is; so the record is its memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import state
from .assignment import BINDINGS, Device, Limits
from .atoms import is_atom
from .devices_seen import BINDING, BOUND, Held
from .holds import RECORDS

LOST = "its CDI specification tells what it holds"
TEXTS = ("allocation_id", "reservation_id", "binding", "state")
NUMBERS = ("generation", "since")


def record_path(allocation: str) -> str:
    """The record's file."""
    return f"{RECORDS}/{allocation}.json"


def render(held: Held) -> str:
    """The text of the record, which root alone reads."""
    record: dict[str, Any] = {
        "allocation_id": held.allocation,
        "reservation_id": held.reservation,
        "binding": held.binding,
        "generation": held.generation,
        "devices": [{"id": device.id, "device_class": device.device_class} for device in held.devices],
    }
    if held.limits is not None:
        given = held.limits._asdict()
        record["limits"] = {key: given[key] for key in given if given[key] is not None}
    return state.render({**record, "env": list(held.env), "since": held.since, "state": held.state})


def parse(path: str, text: str) -> Held:
    """The hold in the text of its record; raises StepFailed, not retryable, for one that is damaged."""
    found = state.parse(path, text, _is_whole, LOST)
    limits = found.get("limits")
    return Held(
        found["allocation_id"],
        tuple(Device(one["id"], one["device_class"]) for one in found["devices"]),
        found["binding"],
        found["reservation_id"],
        found["generation"],
        None if limits is None else Limits(**limits),
        tuple(found["env"]),
        found["since"],
        found["state"],
        record_text=text,
    )


def _is_whole(record: Mapping[str, Any]) -> bool:
    devices, env = record.get("devices"), record.get("env")
    return (
        all(isinstance(record.get(key), str) for key in TEXTS)
        and all(_is_number(record.get(key)) for key in NUMBERS)
        and record.get("state") in (BINDING, BOUND)
        and record.get("binding") in BINDINGS
        and isinstance(devices, list)
        and bool(devices)
        and all(
            isinstance(one, dict) and is_atom(one.get("id")) and _is_text(one.get("device_class")) for one in devices
        )
        and isinstance(env, list)
        and all(map(_is_text, env))
        and _are_limits(record.get("limits", {}))
    )


def _are_limits(given: Any) -> bool:
    return isinstance(given, dict) and all(
        key in Limits._fields and (_is_text(value) if key in ("cpus", "mems") else _is_number(value))
        for key, value in given.items()
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
