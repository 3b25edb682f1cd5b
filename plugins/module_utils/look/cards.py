# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs as holds know them: by UUID, each with the UUIDs of its MIG devices by their instances."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.unknown import later
from ..plan.devices_seen import Card
from ..plan.gpu import Gpu
from ..plan.gpu_listed import MigDevice
from .each_gpu import Row
from .gpu_facts import rows
from .mig import Tables
from .mig_uuids import device_uuids
from .smi_lists import listing, parse_list

ENABLED = "Enabled"


def cards(host: Host) -> tuple[Card, ...]:
    """Every GPU that nvidia-smi lists, one that does not answer with its fault; () where there is none.

    Raises NotReady where GPUs wait for a driver, StepFailed where nvidia-smi does not answer at all.
    """
    tables = Tables(host)
    listed: list[Mapping[str, tuple[MigDevice, ...]]] = []  # asked once, and only where a GPU is in MIG mode

    def devices(gpu: Gpu) -> Mapping[tuple[int, int], str]:
        if not listed:
            listed.append({one.uuid: one.devices for one in parse_list(listing(host))})
        return _named(tables, gpu, listed[0].get(gpu.uuid, ()))

    found = []
    for gpu, row in rows(host):
        try:
            enabled = _mode(gpu, row) == ENABLED
        except StepFailed as fault:
            found.append(Card(gpu.uuid, gpu.pci, fault=fault.message))
            continue
        found.append(Card(gpu.uuid, gpu.pci, later(devices, gpu) if enabled else {}))
    return tuple(found)


def _mode(gpu: Gpu, row: Row) -> str:
    shown = row["mig.mode.current"]
    if shown not in (ENABLED, "Disabled", "[N/A]", "[Not Supported]"):
        raise StepFailed(f"nvidia-smi shows {shown} for the MIG mode of {gpu.uuid}: see the kernel's log for it")
    return shown


def _named(tables: Tables, gpu: Gpu, devices: tuple[MigDevice, ...]) -> Mapping[tuple[int, int], str]:
    """UUIDs by GPU instance and compute instance."""
    order = sorted(tables.compute_instances(gpu.index), key=lambda ci: (ci.gi, ci.id))
    return {(ci.gi, ci.id): uuid for ci, uuid in zip(order, device_uuids(gpu.index, order, devices))}
