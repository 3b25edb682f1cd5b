# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi prints of each GPU, where one that is dead does not keep it from answering for the others."""

from __future__ import annotations

from typing import Any

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.gpu import DRIVER_GPUS, Gpu, value
from ..plan.pci import normal_pci
from ..plan.smi import NAMES
from . import smi

Row = dict[str, str]


def each_gpu(host: Host, fields: tuple[str, ...]) -> tuple[tuple[Gpu, Row], ...]:
    """A GPU and its row, texts by field, for each GPU of the host; `fields` begin with NAMES.

    One question for all of them; where that fails, one for each, and the row of a GPU that fails by itself is a value
    that raises why (see core.unknown), as is that of one which only nvidia-smi's fault names: its UUID here is its PCI
    address. So is the row of a GPU that the driver has taken and nvidia-smi leaves out beside others, and of one that
    does not say which it is: what is set by UUID or by model would go past it.
    Raises what `smi.told` does where no GPU answers.
    """
    try:
        told = tuple(_told(host, row) for row in smi.told(host, fields))
    except StepFailed as fault:
        from .gpus_alone import one_by_one

        return one_by_one(host, fields, fault)
    return (*told, *_left_out(host, {gpu.pci for gpu, _row in told})) if told else ()


def _told(host: Host, row: Row) -> tuple[Gpu, Any]:
    """A GPU and its row; of one that is not named in it, what the driver shows of the GPU at its address."""
    if names(row):
        return gpu_of(row), row
    from .gpus_alone import unnamed

    return unnamed(host, row)


def _left_out(host: Host, shown: set[str]) -> tuple[tuple[Gpu, Any], ...]:
    """The GPUs of the driver that nvidia-smi does not show, though it exits with 0: those that it could not start."""
    known = {normal_pci(pci) for pci in shown}
    if all(normal_pci(name) in known for name in host.names(DRIVER_GPUS) if normal_pci(name)):
        return ()
    from .gpus_alone import left_out

    return left_out(host, known)


def names(row: Row) -> bool:
    """Whether a row says which GPU it is of: each field of NAMES has a value."""
    return all(value(row[field]) is not None for field in NAMES) and row["index"].isdecimal()


def gpu_of(row: Row) -> Gpu:
    """The GPU of a row that names it."""
    return Gpu(int(row["index"]), row["uuid"], row["pci.bus_id"], row["name"])
