# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows of its devices and of who holds them: the snapshot that one look takes for plan.devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .assignment import HOLD, Device, Limits

BINDING, BOUND = "binding", "bound"  # a hold's states: its AllocationBound is journaled last


class Card(NamedTuple):
    """A GPU that nvidia-smi lists, with the UUID of each of its MIG devices by (GPU instance, compute instance).

    `fault`: it is there, and does not answer; `mig` may be a value that raises why it is not known when it is used.
    """

    uuid: str
    pci: str = ""
    mig: Mapping[tuple[int, int], str] = {}
    fault: str = ""


class Held(NamedTuple):
    """A hold that is there: by its record, or where that is gone by its CDI spec, and then by what the spec can say.

    `since` (Unix time) is when it was made, and tells it from another of the same name; `fault`: neither file can be
    made out, so that it counts as holding every GPU. The texts are those of its files, None where one is absent;
    `askew` are the paths of those that are not as root keeps them: of another mode or owner, or a symbolic link.
    """

    allocation: str
    devices: tuple[Device, ...] = ()
    binding: str = HOLD
    reservation: str = ""
    generation: int = 0
    limits: Limits | None = None
    env: tuple[str, ...] = ()
    since: int = 0
    state: str = BOUND
    record_text: str | None = None
    spec_text: str | None = None
    env_text: str | None = None
    fault: str = ""
    askew: tuple[str, ...] = ()


class Vendor(NamedTuple):
    """A CDI specification of nvidia.com/gpu on this host, the outranking one last; `spec` None: it has a `fault`.

    `gone` are the paths that it names and this host lacks.
    """

    path: str
    spec: Mapping[str, Any] | None
    fault: str = ""
    gone: tuple[str, ...] = ()


class Slice(NamedTuple):
    """A slice of ours as systemd and the kernel show it; `files` are those of its cgroup that matter, None: absent."""

    active: bool = False
    populated: bool = False
    files: Mapping[str, str | None] = {}  # "memory.max" -> "4294967296"
    drop_ins: bool = False  # systemd keeps properties of it that were set at runtime


class Release(NamedTuple):
    """A Kubernetes release that waits for its pods, as releasing.json has it."""

    allocation: str
    devices: tuple[Device, ...]
    generation: int
    since: int  # of the hold
    asked: int  # Unix time at which it was released


class Domain(NamedTuple):
    """A virtual machine that runs: its names (libvirt's name and UUID), when it was started, and what it has."""

    names: tuple[str, ...]
    started: int  # the process's start, in clock ticks since the boot: another start is another number
    memory_bytes: int
    hugepages: bool = False
    pci: tuple[str, ...] = ()  # addresses of what it has through VFIO, "0000:17:00.0"


class Passed(NamedTuple):
    """A GPU that a running domain was started with; root's record of it, which outlives the instance's spec."""

    gpu: str  # UUID
    instance: str
    started: int  # of the domain that has it; 0: it did not run yet


class Pool(NamedTuple):
    """Huge pages of one size, in pages: what the host has free, less what is reserved, and what each node has free."""

    kib: int
    free: int
    nodes: Mapping[int, int] = {}


class Memory(NamedTuple):
    """The host's memory, in bytes: /proc/meminfo's MemTotal and Hugetlb, and the pools."""

    total: int
    hugetlb: int
    pools: tuple[Pool, ...] = ()


class Event(NamedTuple):
    """A journaled report: `body` is canonical JSON text; the signature (base64) is that of an attested one.

    `sequence` orders the events that wait; of one whose file cannot be made out only `id` and `fault` are known.
    """

    id: str
    type: str = ""  # "AllocationBound", "AllocationReleased", "AllocationFailed"
    allocation: str = ""
    generation: int = 0
    body: str = ""
    signature: str = ""
    key_id: str = ""
    acknowledged: bool = False  # kept of an AllocationFailed, so that it is reported once a generation
    sequence: int = 0
    fault: str = ""


class Now(NamedTuple):
    """One look. `cards`, `memory` and `pods` may be values that raise why they are not known when they are used."""

    root: bool = True
    time: int = 0  # Unix, seconds
    boot_id: str = ""
    cards: tuple[Card, ...] = ()
    wsl: bool = False
    vendors: tuple[Vendor, ...] = ()
    mps: bool = False  # our bcd-mps.service is installed
    held: Mapping[str, Held] = {}  # by allocation
    slices: Mapping[str, Slice] = {}  # by allocation: every slice of ours that is there
    # By path: cgroup.controllers of the root, and cgroup.subtree_control of it, bcd.slice and bcd-alloc.slice.
    controllers: Mapping[str, str] = {}
    memory: Memory | None = None  # None: it could not be read, or no new hold needs it
    unreadable_memory: str = ""  # why, where it could not
    domains: tuple[Domain, ...] = ()
    vfio: frozenset[str] = frozenset()  # PCI addresses of the GPUs that are bound to vfio-pci
    passed: tuple[Passed, ...] = ()
    releases: tuple[Release, ...] = ()
    unread_releases: str = ""  # releasing.json cannot be read: why
    releases_text: str | None = None  # then what it holds, None where not even that can be read
    lost_releases: bool = False  # the marker is there
    pods: Mapping[str, str] = {}  # by device id of a pending release: who holds it, "" where nobody does
    strangers: str = ""  # with the marker: what pods hold of no allocation that we know, "" once nobody does
    events: tuple[Event, ...] = ()  # the journal
