# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What connects a host's GPUs, and whether they have joined that fabric."""

from __future__ import annotations

from ..core.host import Host
from ..plan.fabric_manager import UMAD, Board, Joined
from . import pci_bus
from .nvidia_proc import taken

SWITCHES = "/proc/driver/nvidia-nvswitch/devices"


def board(host: Host) -> Board:
    """NVSwitches by PCI or by the driver, NVLink 5's managing devices, and the products that the driver knows."""
    return Board(switches(host), managers(host), products(host))


def switches(host: Host) -> tuple[str, ...]:
    """NVSwitches by PCI address: those on the bus, or, where it shows none, those of the driver."""
    return switches_on_the_bus(host) or host.names(SWITCHES)


def switches_on_the_bus(host: Host) -> tuple[str, ...]:
    """NVSwitches by PCI address, which are there without a driver too."""
    return tuple(host.sight(pci_bus.switches))


def managers(host: Host) -> tuple[str, ...]:
    """The InfiniBand devices that manage the switches of NVLink 5, by PCI address; root alone may read their mark.

    On the bus they are there before their driver is, and no module that is still to be loaded brings more of them.
    """
    return tuple(host.sight(pci_bus.managers))


def products(host: Host) -> tuple[str, ...]:
    """The product names of the GPUs that the loaded driver has taken."""
    return tuple(sorted({gpu.model for gpu in taken(host) if gpu.model}))


def umad(host: Host) -> bool:
    """Whether ib_umad is loaded or built in."""
    return host.exists(f"/sys/module/{UMAD}") or host.exists("/sys/class/infiniband_mad")


def joined(host: Host) -> tuple[Joined, ...]:
    """Each GPU's place in the fabric; a GPU in MIG mode has no links, so that its place says nothing."""
    from ..plan.gpu import value
    from ..plan.smi import MODES
    from . import smi
    from .smi_fabric import fabric_states

    states = tuple(Joined(*state) for state in fabric_states(host))
    if all((state, status) in ((None, None), ("Completed", "Success")) for _uuid, state, status in states):
        return states
    modes = {row["uuid"]: value(row["mig.mode.current"]) for row in smi.told(host, MODES)}
    return tuple(state for state in states if modes.get(state.uuid) != "Enabled")
