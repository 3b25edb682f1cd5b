# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was on before swap was turned off for the kubelet: recorded before it is changed, and given back from it."""

from __future__ import annotations

from ..core.state import STATE, parse, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from ..core.named import NamedTuple

RECORD = f"{STATE}/k8s-swap.json"
LOST = "swap then stays off when this machine leaves its cluster"
BOOT, HAND = "boot", "hand"


class Was(NamedTuple):
    """A swap area that was on. `priority` as swapon takes it, below 0 where the kernel chose it. `by` is BOOT where
    fstab or a swap unit names it, the unit that has to be started for it, or HAND where nothing of a boot names it."""

    path: str
    priority: int = -1
    by: str = BOOT


class Record(NamedTuple):
    """What we turned off: areas, lines of fstab as they were, and units by what was done to them."""

    areas: tuple[Was, ...] = ()
    fstab: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


def parse_record(text: str) -> Record:
    """The record; raises StepFailed for one that is damaged or not of our version."""
    found = parse(RECORD, text, _is_whole, LOST)
    return Record(
        tuple(Was(*(area[key] for key in Was._fields)) for area in found["areas"]),
        *(tuple(found[key]) for key in Record._fields[1:]),
    )


def _is_whole(record: dict[str, Any]) -> bool:
    areas = record.get("areas")
    return (
        isinstance(areas, list)
        and all(isinstance(area, dict) and _is_area(area) for area in areas)
        and all(_are_words(record.get(key)) for key in Record._fields[1:])
    )


def _is_area(area: dict[str, Any]) -> bool:
    kinds = {"path": str, "priority": int, "by": str}
    return all(isinstance(area.get(key), kind) for key, kind in kinds.items())


def _are_words(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(word, str) for word in given)


def render_record(record: Record) -> str:
    """The record as JSON."""
    return render({**record._asdict(), "areas": [area._asdict() for area in record.areas]})
