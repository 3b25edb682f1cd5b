# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor's checks of the host itself: its cluster, root's records and files, disks, clock and pending reboots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable

from ..core.errors import Refused
from .allowed_clusters import KEY, NEEDED, clusters
from .cluster_address import address
from .doctor_seen import FAILURE, OK, WARNING, Disk, Snapshot, Told
from .installed import CONFIG

DAY = 86_400  # seconds
SOON = 7 * DAY  # as k8s-join notes it: a kubelet renews its certificate, of a year, long before
OLD_REBOOT = 3 * DAY
LONG_PASS = 2 * 3600  # seconds: a driver that is installed takes minutes
MIB = 1 << 20
# Bytes that have to be free: an initramfs with the driver's firmware in /boot, packages below /var.
ROOM = {"/boot": 200 * MIB, "/var/lib": 1024 * MIB}
LEAST = 16 * MIB  # below this not even records can be written


def allowed_clusters(seen: Snapshot) -> Iterator[Told]:
    """A member's cluster is one that root allows."""
    if seen.config.fault:
        return  # said by config
    joined = seen.cluster.joined
    try:
        allowed = clusters(seen.config.tables.get("kubernetes", {}).get("allowed_clusters", ""))
    except Refused as fault:
        yield Told(FAILURE, fault.message)
        return
    if joined is None:
        return
    entry = f"{joined.server}#sha256:{joined.pins[0] if joined.pins else '<its CA>'}"
    if not allowed and seen.cluster.ours:
        yield Told(FAILURE, f"{NEEDED}, and this machine is a member of {entry}: have root add it in {CONFIG}")
    elif not seen.cluster.ours:
        yield Told(OK, f"this machine was joined to {joined.server} by others, and bcd leaves that to them")
    elif not any((_address(joined.server), pin) in allowed for pin in joined.pins):
        yield Told(
            WARNING,
            f"this machine is a member of {entry}, which is not among {KEY} in {CONFIG}: have root add it there, or "
            "take k8s-join out of the section",
        )
    else:
        yield Told(OK, f"{KEY} has the cluster that this machine is a member of, {joined.server}")


def _address(server: str) -> str:
    try:
        return address(server)
    except ValueError:
        return server


def kubelet_certificate(seen: Snapshot) -> Iterator[Told]:
    """The kubelet's own certificate goes on being renewed."""
    joined = seen.cluster.joined
    if joined is None:
        return
    file = joined.certificate or "the kubelet's certificate"
    left = joined.expires - seen.time
    if not joined.expires:
        yield Told(WARNING, f"{file} has no certificate to read: see journalctl -u kubelet.service")
    elif left <= 0:
        yield Told(
            FAILURE,
            f"{file} ended {-left // DAY} days ago, and the cluster knows this machine no more: join it again (take "
            "k8s-join out of the section, converge, put it back)",
        )
    elif left < SOON:
        yield Told(
            WARNING,
            f"{file} ends in {left // DAY} days and was not renewed: see that the cluster approves its certificate "
            "requests",
        )
    else:
        yield Told(OK, f"{file} is good for {left // DAY} days")


def swap(seen: Snapshot) -> Iterator[Told]:
    """No swap beside a kubelet that does not start with it."""
    it = seen.cluster
    if it.joined is not None and it.swap and not it.swap_allowed:
        yield Told(
            WARNING,
            f"swap is on ({', '.join(it.swap)}), and this cluster's kubelets do not start beside it: converge the "
            "host, or turn it off (swapoff -a)",
        )


def records(seen: Snapshot) -> Iterator[Told]:
    """Root's records can be read."""
    for fault in seen.records.faults:
        yield Told(FAILURE, fault)


def debts(seen: Snapshot) -> Iterator[Told]:
    """No pass has died between a step and its follow-up."""
    for unit, owed in sorted(seen.records.owed.items()):
        yield Told(
            WARNING,
            f"{unit}: a pass ended before what had to follow ({', '.join(owed)}): converge the host, which makes up "
            "for it",
        )


def reboot(seen: Snapshot) -> Iterator[Told]:
    """No reboot has been waited for very long."""
    waits = seen.records.reboot
    if not waits:
        return
    age = seen.records.reboot_age
    told = "; ".join(waits[unit] for unit in sorted(waits))
    if age is not None and age > OLD_REBOOT:
        yield Told(WARNING, f"this host has waited {age // DAY} days for a reboot: {told} (the playbook reboot)")
    else:
        yield Told(OK, f"this host waits for a reboot: {told}")


def root_directories(seen: Snapshot) -> Iterator[Told]:
    """Root writes below directories that only root can write."""
    for path in seen.files.open:
        yield Told(
            FAILURE,
            f"{path} is not a directory only root can write: bcd will not write as root under it: make it root's "
            "(chown root, chmod go-w), and a link a directory",
        )


def secrets(seen: Snapshot) -> Iterator[Told]:
    """Only root can read what is secret."""
    for path, mode in seen.files.readable:
        yield Told(
            FAILURE,
            f"{path} has the mode {mode:04o}, and others than root can read it: chmod 0600 {path}, and replace what it "
            "holds",
        )


def disk(seen: Snapshot) -> Iterator[Told]:
    """There is room for records, packages and boot images."""
    for each in seen.disks:
        left = f"{each.path} has {each.free // MIB} MiB free of {each.size // MIB} MiB"
        if each.free < LEAST:
            yield Told(FAILURE, f"{left}: free some space, or passes will fail")
        elif each.free < _room(each):
            yield Told(WARNING, f"{left}: free some space before packages or boot images are written there")


def _room(each: Disk) -> int:
    """Of a small file system a tenth is enough."""
    return min(ROOM.get(each.path, LEAST), each.size // 10)


def lock(seen: Snapshot) -> Iterator[Told]:
    """No pass has gone on for hours."""
    if seen.lock.seconds > LONG_PASS:
        yield Told(
            WARNING,
            f"{seen.lock.holder} has held the host's lock, or at least run, for {seen.lock.seconds // 3600} hours: see "
            "what it waits for (ps --forest), before you end it",
        )


def clock(seen: Snapshot) -> Iterator[Told]:
    """The clock, by which certificates are good or over, is kept by something."""
    if seen.clock == "no":
        yield Told(
            WARNING,
            "the clock is not synchronised, and certificates are judged by it: turn on a time service (chrony, "
            "systemd-timesyncd)",
        )
    elif seen.clock == "yes":
        yield Told(OK, "the clock is synchronised")


def boot_services(seen: Snapshot) -> Iterator[Told]:
    """What our boot services bring back at a boot came back."""
    for name in seen.failed:
        yield Told(WARNING, f"{name} has failed: see journalctl -u {name}, and converge the host")


HOST_CHECKS: dict[str, Callable[[Snapshot], Iterable[Told]]] = {
    "allowed-clusters": allowed_clusters,
    "kubelet-certificate": kubelet_certificate,
    "swap": swap,
    "records": records,
    "debts": debts,
    "reboot": reboot,
    "root-directories": root_directories,
    "secrets": secrets,
    "disk": disk,
    "lock": lock,
    "clock": clock,
    "boot-services": boot_services,
}
