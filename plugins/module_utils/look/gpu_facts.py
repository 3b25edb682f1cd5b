# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU part of a host's facts: driver, GPUs with their layouts and atoms, fabric, holds, container runtimes.

A host without NVIDIA's driver starts no program for them. What one GPU does not tell, or this account may not see, is
null there and a sentence in `faults`; the rest is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ..core.errors import Fault, NotReady, StepFailed
from ..core.host import Host
from ..plan import atoms
from ..plan.gpu import Gpu
from ..plan.gpu_generations import generation
from ..plan.gpu_listed import MigDevice
from ..plan.gpu_users import App, Holder
from ..plan.holds import Hold, has
from ..plan.mig import ComputeInstance, GpuInstance
from ..plan.mig_text import layout_of
from ..plan.program_version import version_in
from ..plan.smi import NAMES
from . import pci
from .clients import apps_of, claimed, device_holders, gpu_nodes
from .containers import installed, versions
from .driver import loaded
from .driver_library import library
from .each_gpu import Row, each_gpu
from .fabric import switches
from .gpu_shares import shares
from .mig import Tables
from .mig_uuids import device_uuids
from .nvidia_proc import DRIVER
from .smi_fabric import fabric_states
from .smi_lists import listing, parse_list

FIELDS = (*NAMES, "mig.mode.current", "count")
WITH_FABRIC = ("hopper", "blackwell")  # these tell their place in the fabric; before them the switches' driver does
TOOLKIT = "nvidia-ctk"
UNTOLD = {"layout": None, "mig_devices": None, "atoms": None}


Rows = tuple[tuple[Gpu, Row], ...]


class Notes:
    """The sentences on what could not be told."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def told(self, where: str, ask: Callable[..., Any], *given: Any) -> Any:
        """The answer; None, and a sentence, where there is none."""
        try:
            return ask(*given)
        except Fault as fault:
            self.faults.append(f"{where}: {fault.message}")
            return None


def has_driver(host: Host) -> bool:
    """Whether NVIDIA's driver is loaded, or its nvidia-smi installed."""
    return host.exists(DRIVER) or host.which("nvidia-smi") is not None


def driver(host: Host) -> dict[str, str | None]:
    """The versions of the loaded driver and of the library on disk, and the loaded one's flavour."""
    running = loaded(host)
    return {
        "loaded": running.version if running else None,
        "library": library(host),
        "flavour": running.flavour if running else None,
    }


def rows(host: Host) -> Rows:
    """Every GPU with its row; the row of one that does not answer raises why.

    Raises NotReady where GPUs wait for a driver; those that a virtual machine has do not.
    """
    if has_driver(host):
        return each_gpu(host, FIELDS)
    waiting = sum(gpu.driver != "vfio-pci" for gpu in pci.gpus(host))
    if waiting:
        raise NotReady(
            f"{waiting} NVIDIA GPUs are on the PCI bus, and no driver is installed yet (the unit nvidia-driver)"
        )
    return ()


def gpus(
    host: Host, rows: Rows, applied: Callable[[], Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Every GPU, and a sentence on each part that is null; one that does not answer has only what identifies it.

    `applied` reads root's record of the units' wire settings, which tells how GPUs are shared.
    """
    if not rows:
        return [], ()
    notes = Notes()
    everyone = tuple(gpu for gpu, _row in rows)
    listed = (
        notes.told("gpus[].mig_devices[].uuid", _listed, host) if any(_is_parted(row) for _gpu, row in rows) else {}
    )
    nodes = gpu_nodes(host, everyone)
    opened = notes.told("gpus[].holders", device_holders, host)
    told = opened is not None
    claims = notes.told("gpus[].allocations", claimed, host)
    computing = notes.told("gpus[].processes", apps_of, host, everyone)
    share = notes.told("gpus[].sharing", shares, host, applied)
    tables = Tables(host)
    found = []
    for gpu, row in rows:
        here = f"gpus[{gpu.pci if gpu.index < 0 else gpu.index}]"
        mode = notes.told(f"{here}.mig_mode", mig_mode, row)
        parts = None if mode is None else notes.told(f"{here}.layout", _parts, tables, gpu, mode, listed)
        found.append(
            {
                "index": None if gpu.index < 0 else gpu.index,
                "uuid": gpu.uuid,
                "pci": gpu.pci,
                "name": gpu.name,
                "mig_mode": mode or None,
                **(parts or UNTOLD),
                "slices": notes.told(f"{here}.slices", _slices, tables, gpu) if mode == "enabled" else None,
                "sharing": share(gpu.uuid, mode == "enabled") if share else None,
                "allocations": None if claims is None else _allocations(gpu, claims),
                "holders": notes.told(f"{here}.holders", _holders, gpu, nodes[gpu.uuid], opened) if told else None,
                "processes": notes.told(f"{here}.processes", _processes, *computing[gpu.uuid]) if computing else None,
            }
        )
    return found, tuple(notes.faults)


def _is_parted(row: Row) -> bool:
    try:
        return mig_mode(row) == "enabled"
    except Fault:  # told where the GPU itself is
        return False


def mig_mode(row: Row) -> str:
    """The MIG mode, "enabled" or "disabled"; "" of a GPU without MIG. Raises StepFailed for a mode that it hides."""
    shown = row["mig.mode.current"]
    if shown in ("Enabled", "Disabled"):
        return shown.lower()
    if shown in ("[N/A]", "[Not Supported]"):
        return ""
    raise StepFailed(f"nvidia-smi shows {shown} for it: see the kernel's log")


def _parts(tables: Tables, gpu: Gpu, mode: str, listed: dict[str, tuple[MigDevice, ...]] | None) -> dict[str, Any]:
    """The layout, the MIG devices and the atoms of a GPU that answers."""
    whole = [{"id": gpu.uuid, "device_class": atoms.GPU}]
    if mode != "enabled":
        return {"layout": "off" if mode else None, "mig_devices": [], "atoms": whole}
    gis = tables.gpu_instances(gpu.index)
    cis = tables.compute_instances(gpu.index) if gis else ()
    order = sorted(cis, key=lambda ci: (ci.gi, ci.id))
    named = [None] * len(order) if listed is None else device_uuids(gpu.index, order, listed.get(gpu.uuid, ()))
    return {
        "layout": layout_of(True, gis, cis),
        "mig_devices": [_device(gis, ci, uuid) for ci, uuid in zip(order, named)],
        "atoms": [{"id": atoms.mig_device(gpu.uuid, ci.gi, ci.id), "device_class": atoms.MIG} for ci in order],
    }


def _slices(tables: Tables, gpu: Gpu) -> int:
    """The units of memory that the whole GPU has, by where its instances may start; the largest takes all of them."""
    return max(max(place.starts) + place.size for place in tables.placements(gpu.index))


def _device(gis: tuple[GpuInstance, ...], ci: ComputeInstance, uuid: str | None) -> dict[str, Any]:
    place = next((gi for gi in gis if gi.id == ci.gi), None)
    if place is None:
        raise StepFailed(f"nvidia-smi lists a compute instance of the GPU instance {ci.gi}, which it does not list")
    return {
        "uuid": uuid,
        "profile": ci.profile_name,
        "gi": ci.gi,
        "ci": ci.id,
        "start": place.start,
        "size": place.size,
    }


def _listed(host: Host) -> dict[str, tuple[MigDevice, ...]]:
    return {gpu.uuid: gpu.devices for gpu in parse_list(listing(host))}


def _allocations(gpu: Gpu, claims: tuple[Hold, ...]) -> list[str]:
    """The allocations that have the GPU or a part of it, those that pods still have to leave among them."""
    return list(dict.fromkeys(hold.allocation for hold in claims if has(hold, gpu.uuid)))


def _holders(gpu: Gpu, nodes: tuple[str, ...], opened: dict[str, tuple[Holder, ...]]) -> list[dict[str, Any]]:
    """Programs with a GPU's nodes open, those that only watch it among them."""
    if not nodes:
        raise StepFailed(f"the driver does not say which device node is that of {gpu.pci}: see the kernel's log for it")
    mine = sorted({holder for node in nodes for holder in opened.get(node, ())})
    return [{"pid": holder.pid, "program": holder.program} for holder in mine]


def _processes(apps: tuple[App, ...], fault: str) -> list[dict[str, Any]]:
    if fault:
        raise StepFailed(fault)
    return [{"pid": app.pid, "name": app.name} for app in apps]


def fabric(host: Host, rows: Rows) -> dict[str, Any]:
    """The NVLink fabric: how many switches this host has, and whether each GPU has joined; {} without one."""
    count = len(switches(host))
    if not rows or not (count or any(generation(gpu.name) in WITH_FABRIC for gpu, _row in rows)):
        return {}
    states = {
        one.uuid: {"state": one.state, "status": one.status} for one in fabric_states(host) if one.state or one.status
    }
    return {"switches": count, "gpus": states} if count or states else {}


def runtimes(host: Host) -> dict[str, str | None]:
    """The container runtimes that are installed, and NVIDIA's toolkit, with their versions.

    Where there is no driver nobody is asked for a version, and it is null.
    """
    names: tuple[str, ...] = installed(host)
    names = (*names, TOOLKIT) if host.which(TOOLKIT) else names
    if not has_driver(host):
        return dict.fromkeys(names)
    said: dict[str, str] = versions(host)
    if TOOLKIT in names:
        said[TOOLKIT] = version_in(host.ask((TOOLKIT, "--version")).out)
    return {name: said.get(name) or None for name in names}


def capabilities(host: Host, rows: Rows) -> list[str]:
    """What the host can do for reservations: nothing without an answer of nvidia-smi, no hold without GPU and root."""
    holding = ["binding.kubernetes", "cdi", "devices.limits"] if rows and host.uid() == 0 else []
    return [*holding, "nvml"] if has_driver(host) else []
