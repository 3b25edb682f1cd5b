# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's devices on the PCI bus, and those that manage its switches: sights, since a bus has hundreds of devices."""

from __future__ import annotations

from ..core.host import Host

BUS = "/sys/bus/pci/devices"
NVIDIA, MELLANOX = "0x10de", "0x15b3"  # vendors
DISPLAY = "0x03"  # the base class of display and 3D controllers; NVSwitches are bridges, a GPU's sound is multimedia
BRIDGE = "0x0680"  # the class of NVSwitches
NETWORK = "0x02"  # the base class of network and InfiniBand controllers
MARK = "SW_MNG"  # in the vital product data of the devices that manage the switches of NVLink 5


def gpus(host: Host) -> list[tuple[str, str, str]]:
    """NVIDIA's display and 3D controllers, by address: each with its device id as shown, and its driver ("": none)."""
    found = []
    for address in _of(host, NVIDIA, DISPLAY):
        device = host.read(f"{BUS}/{address}/device")
        if device is not None:  # else it went while it was looked at
            found.append((address, device, (host.link(f"{BUS}/{address}/driver") or "").rpartition("/")[2]))
    return found


def switches(host: Host) -> list[str]:
    """NVSwitches by address, which are there without a driver too."""
    return _of(host, NVIDIA, BRIDGE)


def managers(host: Host) -> list[str]:
    """The InfiniBand devices that manage the switches of NVLink 5, by address; root alone may read their mark."""
    return [name for name in _of(host, MELLANOX, NETWORK) if MARK in (host.read(f"{BUS}/{name}/vpd") or "")]


def _of(host: Host, vendor: str, kind: str) -> list[str]:
    theirs = (name for name in host.names(BUS) if (host.read(f"{BUS}/{name}/vendor") or "").strip() == vendor)
    return [name for name in theirs if (host.read(f"{BUS}/{name}/class") or "").startswith(kind)]
