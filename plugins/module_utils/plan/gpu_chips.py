# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs by their PCI device ids: the generation of a chip, and which drivers can run it.

The table holds the ranges that NVIDIA numbers a generation's chips in, so that a product that is new today falls into
its generation. A driver is not needed to read them.

A generation's first branch: that of the first CUDA toolkit which knows it (NVIDIA Data Center Drivers, "CUDA Toolkit,
Driver, and Architecture Matrix"), by the driver which that toolkit needs (CUDA Toolkit Release Notes): 8.0 R367, 9.0
R384, 10.0 R410, 11.0 R450, 11.8 R520, 12.8 R570. The last branch is in the first of the two tables.
"""

from __future__ import annotations

from typing import NamedTuple

from .nvidia_driver_version import OPEN, PROPRIETARY


class PciGpu(NamedTuple):
    """A GPU on the bus: its address, "0000:17:00.0", its device id, 0x2330, and the driver bound to it ("": none)."""

    address: str
    device: int
    driver: str = ""


class Generation(NamedTuple):
    """What a generation needs: the flavours that run it, the first branch that knows it and the last (0: no limit)."""

    name: str
    flavours: tuple[str, ...] = (OPEN, PROPRIETARY)
    first: int = 0
    last: int = 0


# The open modules drive a GPU through its system processor, the GSP, which Turing brought.
KEPLER = Generation("Kepler or older", (PROPRIETARY,), last=470)
MAXWELL = Generation("Maxwell", (PROPRIETARY,), last=580)
PASCAL = Generation("Pascal", (PROPRIETARY,), first=367, last=580)
VOLTA = Generation("Volta", (PROPRIETARY,), first=384, last=580)
TURING = Generation("Turing", first=410)
AMPERE = Generation("Ampere", first=450)
ADA = Generation("Ada", first=520)
HOPPER = Generation("Hopper", first=520)
GRACE_HOPPER = Generation("Grace Hopper", (OPEN,), first=520)
BLACKWELL = Generation("Blackwell", (OPEN,), first=570)
UNKNOWN = Generation("unknown")

# First and last device id of a range, and the chips that NVIDIA numbers in it.
RANGES = (
    (0x0000, 0x133F, KEPLER),  # GF, GK and before
    (0x1340, 0x143F, MAXWELL),  # GM108, GM107, GM204, GM206
    (0x15F0, 0x15FF, PASCAL),  # GP100
    (0x1600, 0x16FF, MAXWELL),  # GM204 of notebooks
    (0x1720, 0x172F, PASCAL),  # GP100
    (0x1740, 0x17FF, MAXWELL),  # GM108, GM107, GM200
    (0x1B00, 0x1D7F, PASCAL),  # GP102, GP104, GP106, GP107, GP108
    (0x1D80, 0x1DFF, VOLTA),  # GV100
    (0x1E00, 0x1FFF, TURING),  # TU102, TU104, TU106, TU117
    (0x2080, 0x20FF, AMPERE),  # GA100
    (0x2180, 0x21FF, TURING),  # TU116
    (0x2200, 0x22FF, AMPERE),  # GA102
    (0x2300, 0x233F, HOPPER),  # GH100 on boards of its own
    (0x2340, 0x237F, GRACE_HOPPER),  # GH100 beside a Grace CPU
    (0x2400, 0x25FF, AMPERE),  # GA103, GA104, GA106, GA107
    (0x2680, 0x28FF, ADA),  # AD102, AD103, AD104, AD106, AD107
    (0x2900, 0x29FF, BLACKWELL),  # GB100, GB102
    (0x2B00, 0x2FFF, BLACKWELL),  # GB10B, GB202, GB203, GB206, GB207, GB20B, GB205
    (0x3180, 0x31FF, BLACKWELL),  # GB110
)


def generation(device: int) -> Generation:
    """The generation of a device id; UNKNOWN for one in no range of the table."""
    return next((found for first, last, found in RANGES if first <= device <= last), UNKNOWN)


def named(gpu: PciGpu) -> str:
    """How a message names a GPU: "0000:17:00.0 (Hopper, device 2330)"."""
    return f"{gpu.address} ({generation(gpu.device).name}, device {gpu.device:04x})"
