# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of cdi_holds, as the reports take it: one more unit of its host, and who holds what there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..module_utils.plan.assignment import UNIT
from .shapes import NUMBER, maybe, text

REASON = "AssignmentFailed"  # beside the units' own: the assignment is at fault, not a step
WHAT = ("bound", "kept", "released", "releasing")


def is_of_devices(result: Mapping[str, Any]) -> bool:
    """Whether it is a result of cdi_holds."""
    return result.get("unit") == UNIT


def is_of_events(result: Mapping[str, Any]) -> bool:
    """Whether it acknowledged events, and says nothing of the holds."""
    return is_of_devices(result) and "section" not in result


def as_unit(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result with the keys of a unit: assignments that cannot be honoured are its failure.

    The task itself fails by bad options alone, so that a `msg` is mostly not there.
    """
    told = [f"{each['allocation_id']}: {each['message']}" for each in failures(result)]
    if "msg" in result or not (told or result.get("reason")):
        return dict(result)
    if not result.get("reason"):
        return {**result, "reason": REASON, "retryable": False, "msg": "; ".join(told)}
    section = result.get("section")
    message = section.get("message") if isinstance(section, Mapping) else None
    return {**result, "msg": str(message or result["reason"])}


def failures(result: Mapping[str, Any]) -> list[dict[str, str]]:
    """The assignments that cannot be honoured, each with its allocation, reason and message."""
    keys = ("allocation_id", "reason", "message")
    return [{key: text(each.get(key)) for key in keys} for each in _mappings(result.get("failures"))]


def devices_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """What the fleet document has of a host's devices."""
    return {
        **{key: [text(name) for name in _list(result.get(key))] for key in WHAT},
        "failures": failures(result),
        "holds": [_hold(each) for each in _mappings(result.get("holds"))],
    }


def _hold(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "allocation_id": text(given.get("allocation_id")),
        "binding": text(given.get("binding") or ""),
        "devices": [text(device) for device in _list(given.get("devices"))],
        "generation": maybe(given.get("generation"), NUMBER),
    }


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in _list(value) if isinstance(each, Mapping)]
