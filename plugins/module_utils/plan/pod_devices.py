# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a pod has a device of ours. A resource's plugin names devices as it likes, so names are mapped to devices.

A device is compared by its key: "gpu-<uuid>", "gpu-<uuid>-gi1-ci0", "gpu-<uuid>-s3". The names of dynamic resources
have no capital letters and no "_", those of CDI no "/": all spellings of one id have one key, and two ids never do.
What may be any GPU's counts for every one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .devices_seen import Card
from .pod_resources import Use

ANY = ""  # the key of what may be any GPU's
KEY = re.compile(r"(gpu-.+?)(-gi\d+-ci\d+|-s\d+)?")
NVIDIA_DRA = "gpu.nvidia.com"
NUMBERED = re.compile(r"gpu-(\d+)(-mig-.+)?")  # of NVIDIA's DRA driver: by the number of the device node
EVERY = "nvidia.com/gpu=all"  # a CDI name
REPLICA = "::"  # of NVIDIA's device plugin, on a shared device: "GPU-...::3"


class Process(NamedTuple):
    """A process of a pod that has NVIDIA's device nodes open.

    `gpus` are the keys of the GPUs whose nodes it has, ANY for a node of which the driver does not say whose it is;
    none where it has the node of unified memory alone, as a client of MPS may.
    """

    pid: int
    program: str
    uid: str  # of the pod
    gpus: frozenset[str]


class Account(NamedTuple):
    """What one look has of the pods of this host: what they were given, what they have open, what could not be read.

    `minors` is the UUID of the GPU of each /dev/nvidia<number>, of those that the driver says.
    """

    uses: tuple[Use, ...] = ()
    processes: tuple[Process, ...] = ()
    faults: tuple[str, ...] = ()
    minors: Mapping[int, str] = {}


def key(name: str) -> str:
    """The key of an id, of a CDI name ("bcd.dev/gpu=GPU-..._s3") or of a plugin's name of either."""
    return name.rpartition("=")[2].partition(REPLICA)[0].lower().replace("/", "-").replace("_", "-")


def halves(device: str) -> tuple[str, bool]:
    """The key of the GPU of a device's key, and whether the device is a part of it."""
    found = KEY.fullmatch(device)
    return (found.group(1), found.group(2) is not None) if found else (device, False)


class Holders:
    """The account, by device. One pass over it, then each device costs what is held of it."""

    def __init__(self, account: Account, cards: Iterable[Card] = ()) -> None:
        self._account = account
        self._mig = {
            key(uuid): f"{key(card.uuid)}-gi{gi}-ci{ci}" for card in cards for (gi, ci), uuid in card.mig.items()
        }
        self._minors = {number: key(uuid) for number, uuid in account.minors.items()}
        self._exact: dict[str, list[Use]] = {}  # by the device's key, what may be any GPU's under ANY
        self._parts: dict[str, list[Use]] = {}  # by the key of the GPU of which it is a part
        self._given: dict[str, set[str]] = {}  # the keys of the GPUs that a pod was given a device of, by its uid
        self._of: list[tuple[Use, set[str]]] = []
        for use in account.uses:
            self._enter(use)

    def _enter(self, use: Use) -> None:
        devices = self._devices(use)
        if not devices:  # no GPU of NVIDIA's
            return
        self._of.append((use, devices))
        for device in devices:
            gpu, is_part = halves(device)
            self._exact.setdefault(device, []).append(use)
            if is_part:
                self._parts.setdefault(gpu, []).append(use)
            if use.uid:
                self._given.setdefault(use.uid, set()).add(gpu)

    def _devices(self, use: Use) -> set[str]:
        """The keys of the devices that a use may be of: several where it has several names."""
        found = {ANY} if EVERY in use.names else set()
        for name in use.names[1:] if use.driver else use.names:  # the first of a dynamic resource is a path
            named = key(name)
            if named.startswith("mig-"):
                found.add(self._mig.get(named, ANY))
            elif KEY.fullmatch(named) and not NUMBERED.fullmatch(named):
                found.add(named)
        if use.driver == NVIDIA_DRA and not found:
            numbered = NUMBERED.fullmatch(use.device)
            found.add(self._minors.get(int(numbered.group(1)), ANY) if numbered else ANY)
        return found

    # -- one device

    def who(self, device: str) -> str:
        """Who has the device of this id, a clause; "" where no pod has it, as far as every source says."""
        own = key(device)
        own = self._mig.get(own, own)
        gpu, is_part = halves(own)
        uses = [*self._exact.get(own, ()), *self._exact.get(ANY, ())]
        uses += self._exact.get(gpu, ()) if is_part else self._parts.get(gpu, ())
        if uses:
            return _have(uses)
        for process in self._account.processes:
            if self._has(process, gpu, is_part):
                return f"process {process.pid} ({process.program}) of {_pod(process)} has it open"
        return f"who has it is not known ({'; '.join(self._account.faults)})" if self._account.faults else ""

    def _has(self, process: Process, gpu: str, is_part: bool) -> bool:
        """Whether an open node is a hold: of a part, only where the pod was not given another part of the GPU."""
        given = self._given.get(process.uid, set())
        if gpu in process.gpus or (ANY in process.gpus and gpu not in self._minors.values()):
            return not (is_part and gpu in given)
        return not process.gpus and not given

    # -- what nobody knows of

    def strangers(self, known: Iterable[str]) -> str:
        """Who has a GPU's device that is none of the known ids, a clause; "" where nobody does."""
        devices = {self._mig.get(key(device), key(device)) for device in known}
        gpus = {halves(device)[0] for device in devices}
        for use, keys in self._of:
            if not any(self._is_known(device, devices, gpus) for device in keys):
                return f"{use.pod} has {use.names[0]}"
        for process in self._account.processes:
            told = self._given.get(process.uid, set())  # of that, its uses have told
            if not process.gpus <= gpus | told or not (process.gpus or told):
                return f"process {process.pid} ({process.program}) of {_pod(process)} has a GPU open"
        return "; ".join(self._account.faults)

    @staticmethod
    def _is_known(device: str, devices: set[str], gpus: set[str]) -> bool:
        gpu, is_part = halves(device)
        return device in devices or (gpu in devices if is_part else gpu in gpus)


def _pod(process: Process) -> str:
    return f"pod {process.uid}" if process.uid else "a pod"


def _have(uses: list[Use]) -> str:
    """The first two pods, and how many more. A checkpoint does not know a pod's name: one that is listed has it."""
    names = list(dict.fromkeys(use.pod for use in uses if not use.uid) or dict.fromkeys(use.pod for use in uses))
    if len(names) > 2:
        return f"{', '.join(names[:2])} and {len(names) - 2} more have it"
    return f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} it"
