# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual machines that run here, whoever started them: the QEMU processes in /proc.

A device that was plugged into a running machine stands on no command line, so the VFIO files that a process has open
are read too.
"""

from __future__ import annotations

import re

from ..core.errors import Unreadable
from ..core.host import Host
from ..plan.devices_seen import Domain
from ..plan.pci import normal_pci
from ..plan.qemu import DEFAULT, HUGE, Machine, is_qemu, machine

GONE = " (deleted)"  # of a program that was upgraded while it runs
BUS = "/sys/bus/pci/devices"
GROUPS = "/sys/kernel/iommu_groups"
OPEN = re.compile(r"/dev/vfio/(\d+|devices/(vfio\d+))")
ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)
RSS = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)


def domains(host: Host) -> tuple[Domain, ...]:
    """Every running or paused virtual machine, by process.

    One whose command line does not tell its memory counts with what it has in use now, and at least QEMU's default.
    """
    found = []
    for pid in host.names("/proc"):
        if pid.isdecimal() and is_qemu(_program(host, pid)):
            line = (host.read(f"/proc/{pid}/cmdline") or "").rstrip("\0")
            seen = machine(tuple(line.split("\0"))) if line else None  # without one it ended
            started = _started(host, pid)
            if seen is not None and started is not None:
                found.append(_domain(host, pid, seen, started))
    return tuple(found)


def _domain(host: Host, pid: str, seen: Machine, started: int) -> Domain:
    memory = seen.memory
    if memory is None:
        resident = RSS.search(host.read(f"/proc/{pid}/status") or "")
        memory = max(DEFAULT, 1024 * int(resident.group(1)) if resident else 0)
    return Domain(
        names=seen.names or (f"process {pid}",),
        started=started,
        memory_bytes=memory,
        hugepages=_is_huge(host, seen.places),
        pci=_devices(host, pid, seen),
    )


def _program(host: Host, pid: str) -> str:
    """The name of a process's program, without its directory; "" for one of the kernel's, and one that ended.

    Where even root may not see the program, in a container, the process's own word for it counts.
    """
    try:
        path = host.link(f"/proc/{pid}/exe") or ""
    except Unreadable:
        path = (host.read(f"/proc/{pid}/cmdline") or "").split("\0", maxsplit=1)[0]
    return path.removesuffix(GONE).rpartition("/")[2]


def _started(host: Host, pid: str) -> int | None:
    """When a process was started, in clock ticks since the boot: field 22 of its stat; None when it ended.

    The second field is its name, in parentheses, which may hold anything.
    """
    fields = (host.read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else None


def _is_huge(host: Host, places: tuple[str, ...]) -> bool:
    """Whether all of these parts of a memory are huge pages; a memory that is so in part counts as ordinary."""
    files = [place for place in places if place != HUGE]
    if not all(files):
        return False
    mounts = [line.split() for line in (host.read("/proc/mounts") or "").splitlines()] if files else []
    huge = tuple(f"{fields[1]}/" for fields in mounts if len(fields) > 2 and fields[2] == "hugetlbfs")
    return all(f"{file}/".startswith(huge) for file in files)


def _devices(host: Host, pid: str, seen: Machine) -> tuple[str, ...]:
    """The addresses of what a machine has through VFIO; of a virtual function, or a vGPU, the whole device's."""
    found = [address if address.count(":") == 2 else f"0000:{address}" for address in seen.host]
    places = list(seen.sysfs)
    for name in host.names(f"/proc/{pid}/fd"):
        opened = OPEN.fullmatch(host.link(f"/proc/{pid}/fd/{name}") or "")
        if opened and opened.group(2):
            places.append(f"/sys/class/vfio-dev/{opened.group(2)}/device")
        elif opened:
            group = host.names(f"{GROUPS}/{opened.group(1)}/devices")
            found += [member for member in group if ADDRESS.fullmatch(member)]
            places += [f"/sys/bus/mdev/devices/{member}" for member in group if not ADDRESS.fullmatch(member)]
    for place in places:
        # A link ends with the bridges' addresses, the device's, and for a vGPU its own UUID: the last address counts.
        found += ADDRESS.findall(host.link(place) or place)[-1:]
    whole = (_whole(host, address.lower()) for address in found)
    return tuple(sorted({address for address in whole if normal_pci(address)}))


def _whole(host: Host, address: str) -> str:
    """The address of the device that a virtual function belongs to; its own for any other."""
    return (host.link(f"{BUS}/{address}/physfn") or address).rpartition("/")[2]
