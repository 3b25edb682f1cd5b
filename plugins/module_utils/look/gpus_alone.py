# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs of which nvidia-smi does not tell beside the others: they are asked by themselves, or known by the driver."""

from __future__ import annotations

from typing import Any

from ..core.errors import Hung, StepFailed
from ..core.host import Host
from ..core.unknown import Unknown, is_known, later
from ..plan.gpu import Gpu, value
from ..plan.pci import normal_pci
from ..plan.smi import NAMES
from . import nvidia_proc, smi
from .each_gpu import Row, gpu_of
from .smi_faults import NoAnswer

BRIEFLY = 10.0  # seconds for one GPU, once all of them together made nvidia-smi hang: the host's lock is held meanwhile


def one_by_one(host: Host, fields: tuple[str, ...], fault: StepFailed) -> tuple[tuple[Gpu, Any], ...]:
    """As `each_gpu`, where the question about all of them failed with the fault; raises it where no GPU answers."""
    known = _from_proc(host)
    seconds = BRIEFLY if isinstance(fault, Hung) else smi.TIMEOUT
    rows: list[tuple[Gpu, Any]] = [(gpu, later(_row, host, fields, gpu, seconds)) for gpu in known]
    if not any(is_known(row) for _named, row in rows):
        raise fault
    rows += [(gpu, Unknown(fault)) for gpu in _fallen(fault, known)]
    return tuple((gpu_of(row) if is_known(row) else gpu, row) for gpu, row in rows)


def left_out(host: Host, shown: set[str | None]) -> tuple[tuple[Gpu, Any], ...]:
    """The GPUs that the driver has taken and nvidia-smi does not show."""
    missing = [gpu for gpu in _from_proc(host) if gpu.pci not in shown]
    why = "does not list it, though the driver has taken it: see the kernel's log for it (NVRM, Xid)"
    return tuple(
        (gpu._replace(index=-1), Unknown(StepFailed(f"GPU {gpu.pci} ({gpu.name or 'unknown'}): nvidia-smi {why}")))
        for gpu in missing
    )


def unnamed(host: Host, row: Row) -> tuple[Gpu, Any]:
    """What the driver shows of the GPU at the address of a row that does not name it; raises where it has none."""
    fault = _nameless(row)
    pci = normal_pci(row["pci.bus_id"])
    if pci is None or fault is None:
        raise fault or StepFailed("nvidia-smi names a GPU that it does not name: look again")
    known = next((gpu for gpu in _from_proc(host) if gpu.pci == pci), Gpu(-1, pci, pci, ""))
    return known._replace(index=int(row["index"])), Unknown(fault)


def _fallen(fault: StepFailed, known: tuple[Gpu, ...]) -> list[Gpu]:
    """The GPUs that nvidia-smi's fault names and the driver does not show: those that fell off the bus."""
    named = {normal_pci(address) or address for address in (fault.gpus if isinstance(fault, NoAnswer) else ())}
    return [Gpu(-1, pci, pci, "") for pci in sorted(named - {gpu.pci for gpu in known})]


def _nameless(row: Row) -> StepFailed | None:
    """The fault of a row in which a field of NAMES has no value."""
    for field in NAMES:
        if value(row[field]) is None or (field == "index" and not row[field].isdecimal()):
            where = f"GPU {row['index']} ({row['pci.bus_id']})"
            return StepFailed(f"nvidia-smi prints {row[field]} as the {field} of {where}: see the kernel's log for it")
    return None


def _row(host: Host, fields: tuple[str, ...], gpu: Gpu, seconds: float) -> Row:
    row = smi.told(host, fields, gpu.pci, seconds)[0]
    fault = _nameless(row)
    if fault:
        raise fault
    return row


def _from_proc(host: Host) -> tuple[Gpu, ...]:
    """The GPUs that the driver has taken, a dead one among them; nvidia-smi numbers them by their PCI addresses.

    One whose UUID the driver does not know has its address for it: two of them are two.
    """
    return tuple(Gpu(at, gpu.uuid or gpu.pci, gpu.pci, gpu.model) for at, gpu in enumerate(nvidia_proc.taken(host)))
