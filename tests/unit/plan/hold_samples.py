# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds and vendor specifications that the tests of a hold's specification are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import HOLD, KUBERNETES, Device, Limits
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.device_atoms import Resolved
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Held, Vendor
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hold_spec import render

__all__ = ["HOLD", "KUBERNETES", "Limits"]

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
B = "GPU-5f1c2a90-0000-4000-8000-000000000002"
MIG_UUID = "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"
JSON, YAML = "/etc/cdi/nvidia.json", "/run/cdi/nvidia.yaml"


def held(*atoms: str, allocation: str = "alloc_1", **fields: Any) -> Held:
    """A hold of these devices."""
    return Held(allocation, tuple(Device(atom, device_class(atom)) for atom in atoms), **fields)


def device_class(atom: str) -> str:
    """The class of a device with this id."""
    if "/gi" in atom:
        return "gpu.mig"
    return "gpu.slot" if "/s" in atom else "gpu"


def resolved(hold: Held, mig: Mapping[str, str] | None = None) -> list[Resolved]:
    """The hold's devices as they are on a host where MIG devices have these UUIDs, by atom."""
    found = []
    for device in hold.devices:
        gpu = device.id.partition("/")[0]
        found.append(Resolved(device, gpu, (mig or {}).get(device.id, MIG_UUID if "/gi" in device.id else gpu)))
    return found


def node(path: str) -> dict[str, Any]:
    """Edits with one device node."""
    return {"deviceNodes": [{"path": path}]}


def vendor(
    devices: Mapping[str, Any], common: Any = None, path: str = JSON, version: str = "1.1.0", gone: Sequence[str] = ()
) -> Vendor:
    """A vendor's file with these edits by device name."""
    entries = [{"name": name, "containerEdits": edits} for name, edits in devices.items()]
    spec = {"cdiVersion": version, "kind": "nvidia.com/gpu", "devices": entries, "containerEdits": common or {}}
    return Vendor(path, spec, gone=tuple(gone))


def written(
    hold: Held,
    *vendors: Vendor,
    mps: bool = False,
    wsl: bool = False,
    ceiling: str | None = None,
    mig: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The hold's specification."""
    found = json.loads(render(hold, resolved(hold, mig), vendors, mps, wsl, ceiling))
    return dict(found)
