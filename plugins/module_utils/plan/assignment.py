# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a control plane, or a person, assigns: allocations, each with the devices and host resources booked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

UNIT = "devices"  # the section's name in results, debts and messages
HOLD, KUBERNETES = "BINDING_HOLD", "BINDING_KUBERNETES"
SLOTS = 48  # of a shared GPU, unless slot_count says otherwise


class Device(NamedTuple):
    """A device as it was asked for: its id (see plan.atoms) and its class, "gpu", "gpu.mig" or "gpu.slot"."""

    id: str
    device_class: str = "gpu"


class Limits(NamedTuple):
    """Host resources booked with the devices; None where none are. The cpulists are as they were given."""

    cpus: str | None = None  # a cpulist
    mems: str | None = None  # a list of NUMA nodes
    cpu_millis: int | None = None  # thousandths of one CPU
    memory_bytes: int | None = None
    hugepages_2mi: int | None = None  # pages
    hugepages_1gi: int | None = None  # pages


class Assignment(NamedTuple):
    """One allocation of the section. Its binding and its devices may be ones that cannot be honoured."""

    allocation: str
    binding: str = HOLD
    devices: tuple[Device, ...] = ()
    reservation: str = ""
    limits: Limits | None = None  # None: devices only
    env: tuple[str, ...] = ()  # "KEY=VALUE" lines for the env file


class Instance(NamedTuple):
    """A virtual machine that the control plane runs here."""

    id: str
    memory_bytes: int = 0
    hugepages: bool = False  # its memory is huge pages


class Section(NamedTuple):
    """The whole of what is to be held on this host: what is not named is released."""

    assignments: tuple[Assignment, ...] = ()
    generation: int = 0
    passthrough: Mapping[str, str] = {}  # GPU UUID -> the instance that has it, or is to have it, through VFIO
    instances: tuple[Instance, ...] = ()
    ceiling: str | None = None  # no CDI version above this one is written
    slots: int = SLOTS
    node_id: str = ""
