# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor's checks of what GPUs and their holds need: IOMMU, driver, CDI specifications, holds and releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable

from .doctor_seen import FAILURE, OK, WARNING, Snapshot, Told
from .kube_releases import STUCK

MANY_EVENTS = 1000


def iommu(seen: Snapshot) -> Iterator[Told]:
    """The IOMMU that is asked for is on, and where one is on guests can be given devices."""
    it = seen.iommu
    if not it.enabled:
        if it.asked:
            yield Told(
                WARNING,
                "the section asks for an IOMMU, and none is on: reboot the host if its boot arguments are new, else "
                "turn on VT-d or AMD-Vi in the firmware",
            )
    elif not it.vfio:
        yield Told(
            WARNING,
            "an IOMMU is on, and no vfio-pci driver is loaded, so that no device can be passed through: load vfio-pci "
            "by the unit kernel-modules",
        )
    else:
        yield Told(OK, "an IOMMU is on, and the vfio-pci driver is loaded")


def gpus(seen: Snapshot) -> Iterator[Told]:
    """Every GPU answers."""
    for fault in seen.gpus.faults:
        yield Told(WARNING, fault)


def secure_boot(seen: Snapshot) -> Iterator[Told]:
    """The driver's module is one that this kernel takes."""
    it = seen.gpus
    if it.only_signed and it.module and not it.signer:
        loaded = "is loaded now, and will not be after a change" if it.driver else "cannot be loaded"
        yield Told(
            WARNING,
            f"{it.only_signed}, and {it.module} has no signature: NVIDIA's driver {loaded}: sign the module with a key "
            "that the machine has enrolled, or install prebuilt signed modules",
        )


def vendor_cdi(seen: Snapshot) -> Iterator[Told]:
    """NVIDIA's CDI specification is there, sound, and names what is there."""
    it = seen.specs
    for path, fault in (*it.faults, *it.broken):
        yield Told(
            WARNING,
            f"{path} is no sound CDI specification ({fault}), and runtimes pass over it: converge with "
            "container-toolkit, or remove it where it is not NVIDIA's",
        )
    for path, gone in it.gone:
        more = f" and {len(gone) - 3} more" if gone[3:] else ""
        yield Told(
            WARNING,
            f"{path} names what this host lacks ({', '.join(gone[:3])}{more}), as after a change of driver or layout: "
            "converge with container-toolkit, or run nvidia-ctk cdi generate",
        )
    if it.toolkit and seen.gpus.driver and seen.gpus.number and not (it.sound or it.faults):
        yield Told(
            WARNING,
            "no CDI specification of nvidia.com/gpu is there, and neither holds nor containers get a GPU: converge "
            "with container-toolkit",
        )


def holds(seen: Snapshot) -> Iterator[Told]:
    """Every hold has its files, as root keeps them."""
    it = seen.holds
    for fault in it.faults:
        yield Told(FAILURE, fault)
    for allocation, lacks in it.bare:
        yield Told(WARNING, f"the hold {allocation} has no {lacks}: converge its devices, which mends it")
    for path in it.askew:
        yield Told(
            WARNING,
            f"{path} is not as root keeps it (owner, mode, or a link in its place): converge the devices, which "
            "mends it",
        )


def releases(seen: Snapshot) -> Iterator[Told]:
    """No release waits for its pods for long."""
    it = seen.holds
    if it.unread:
        yield Told(FAILURE, it.unread)
    for allocation, asked in it.releases:
        if seen.time - asked > STUCK:
            yield Told(
                WARNING,
                f"{allocation} was released {(seen.time - asked) // 60} minutes ago and keeps its claim until no pod "
                "has a device of it: delete the pods that do, and converge the devices",
            )


def events(seen: Snapshot) -> Iterator[Told]:
    """Reports of holds are taken."""
    if seen.holds.events > MANY_EVENTS:
        yield Told(
            WARNING,
            f"{seen.holds.events} reports of holds wait to be acknowledged: see that what reads them (bcd_devices) "
            "gets them and gives acknowledge",
        )


GPU_CHECKS: dict[str, Callable[[Snapshot], Iterable[Told]]] = {
    "iommu": iommu,
    "gpus": gpus,
    "secure-boot": secure_boot,
    "vendor-cdi": vendor_cdi,
    "holds": holds,
    "releases": releases,
    "events": events,
}
