# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What connects a host's GPUs, and whether they have joined that fabric."""

from __future__ import annotations

from ..core.host import Host
from ..plan.fabric_manager import UMAD, Board, Joined
from .nvidia_proc import taken

SWITCHES = "/proc/driver/nvidia-nvswitch/devices"
BUS = "/sys/bus/pci/devices"
NVIDIA, BRIDGE = "0x10de", "0x0680"  # the vendor, and the class of NVSwitches
MELLANOX, NETWORK = "0x15b3", "0x02"  # the vendor, and the base class of network and InfiniBand controllers
MARK = "SW_MNG"  # in the vital product data of the devices that manage the switches of NVLink 5


def board(host: Host) -> Board:
    """NVSwitches by PCI or by the driver, NVLink 5's managing devices, and the products that the driver knows."""
    return Board(switches(host), managers(host), products(host))


def switches(host: Host) -> tuple[str, ...]:
    """NVSwitches by PCI address: those on the bus, or, where it shows none, those of the driver."""
    return switches_on_the_bus(host) or host.names(SWITCHES)


def switches_on_the_bus(host: Host) -> tuple[str, ...]:
    """NVSwitches by PCI address, which are there without a driver too."""
    ours = (name for name in host.names(BUS) if (host.read(f"{BUS}/{name}/vendor") or "").strip() == NVIDIA)
    return tuple(name for name in ours if (host.read(f"{BUS}/{name}/class") or "").startswith(BRIDGE))


def managers(host: Host) -> tuple[str, ...]:
    """The InfiniBand devices that manage the switches of NVLink 5, by PCI address; root alone may read their mark.

    On the bus they are there before their driver is, and no module that is still to be loaded brings more of them.
    """
    theirs = [name for name in host.names(BUS) if (host.read(f"{BUS}/{name}/vendor") or "").strip() == MELLANOX]
    cards = [name for name in theirs if (host.read(f"{BUS}/{name}/class") or "").startswith(NETWORK)]
    return tuple(name for name in cards if MARK in (host.read(f"{BUS}/{name}/vpd") or ""))


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
