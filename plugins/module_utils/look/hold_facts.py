# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The holds of a host as facts: who has which devices, and whose release still waits for pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.host import Host
from ..plan.assignment import KUBERNETES
from ..plan.devices_seen import Held, Release
from ..plan.holds import CDI, RECORDS, RELEASING, SPEC, Hold
from .holds import releasing


def hold_facts(host: Host) -> list[dict[str, Any]]:
    """Every hold, and every release that still waits; one that cannot be made out has every GPU, and a `fault`."""
    live = _live(host)
    pending = {hold.allocation: hold for hold in releasing(host)}
    recorded = _recorded(host) if pending else {}
    return [
        *(_hold(held, name in pending) for name, held in live.items()),
        *(_release(hold, recorded.get(name)) for name, hold in pending.items() if name not in live),
    ]


def _live(host: Host) -> Mapping[str, Held]:
    if not any(map(SPEC.fullmatch, host.names(CDI))) and not host.names(RECORDS):
        return {}
    from .devices import held  # costs, and most hosts hold nothing

    return held(host, host.uid() == 0)


def _hold(held: Held, waits: bool) -> dict[str, Any]:
    return {
        "allocation_id": held.allocation,
        "binding": None if held.fault else held.binding,
        "devices": [device.id for device in held.devices],
        "generation": None if held.fault else held.generation,
        "releasing": waits,
        "fault": held.fault or None,
    }


def _release(hold: Hold, release: Release | None) -> dict[str, Any]:
    return {
        "allocation_id": hold.allocation,
        "binding": None if hold.fault else KUBERNETES,
        "devices": list(hold.devices),
        "generation": release.generation if release else None,
        "releasing": True,
        "fault": hold.fault or None,
    }


def _recorded(host: Host) -> dict[str, Release]:
    """The releases by allocation, with all that the file says of them; what is wrong with it is told elsewhere."""
    from ..plan.kube_releases import parse

    try:
        return {release.allocation: release for release in parse(host.read(RELEASING) or "{}")}
    except ValueError:
        return {}
