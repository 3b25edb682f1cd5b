# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as values: what identifies one, how settings select one, and what it shows."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from ..core.plan import Field
from .pci import normal_pci


class Gpu(NamedTuple):
    """One GPU as nvidia-smi lists it. The index follows the PCI bus, and changes when a GPU comes or goes."""

    index: int  # type: ignore[assignment]  # the field's word; tuple.index is not used
    uuid: str  # "GPU-5f1c2a90-..."
    pci: str  # as nvidia-smi prints it, "00000000:17:00.0"
    name: str  # the product's name, "NVIDIA H100 80GB HBM3"


class Select(NamedTuple):
    """Which GPUs a setting is for: those whose `kind` (uuid, pci, index, model) is, or fits, the value."""

    kind: str
    value: str | int


SELECT: tuple[Field, ...] = (
    Field("uuid", "uuid", (str,)),
    Field("pci", "pci", (str,)),
    Field("index", "index", (int,)),
    Field("model", "model", (str,)),
)

# What nvidia-smi prints for a value that it does not have; in brackets in a query, without them in -q -x.
NO_VALUE = frozenset(
    (
        "",
        "N/A",
        "Not Supported",
        "Unknown Error",
        "GPU is lost",
        "GPU requires reset",
        "Insufficient Permissions",
        "Resource not in correct state to perform requested operation",
        "Requested functionality has been deprecated",
    )
)
# A query prints these for what a GPU does not have; other texts in brackets are a fault of the GPU or of the driver.
LACKING = frozenset(("[N/A]", "N/A", "[Not Supported]", "Not Supported"))
MODES = {"Enabled": True, "Disabled": False}  # of MIG, of ECC
DRIVER_GPUS = "/proc/driver/nvidia/gpus"  # a directory for each that the driver has taken


def value(text: str) -> str | None:
    """A field's value; None for anything in square brackets and for the texts that stand for no value."""
    plain = text.strip()
    if plain.startswith("[") and plain.endswith("]"):
        return None
    return None if plain in NO_VALUE else plain


def matches(select: Select, gpu: Gpu) -> bool:
    """Whether the selector takes the GPU; a model is a pattern over the whole product name, in its case."""
    if select.kind == "index":
        return select.value == gpu.index
    wanted = str(select.value)
    if select.kind == "uuid":
        return wanted.lower() == gpu.uuid.lower()
    if select.kind == "pci":
        return normal_pci(wanted) == normal_pci(gpu.pci)
    return fnmatchcase(gpu.name, wanted)


def first_match(selects: tuple[Select, ...], gpu: Gpu) -> int | None:
    """The place of the first selector that takes the GPU; None when none does."""
    return next((at for at, select in enumerate(selects) if matches(select, gpu)), None)
