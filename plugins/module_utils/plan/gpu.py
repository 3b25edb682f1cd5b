# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as values: what identifies one, how settings select one, and who has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ..core.errors import Refused, StepFailed
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


class Holder(NamedTuple):
    """A process that has a device node open."""

    pid: int
    program: str  # "nvidia-persistenced"


class App(NamedTuple):
    """A process that computes on a GPU; of one in a MIG device the GPU is the parent's."""

    gpu_uuid: str
    pid: int
    name: str


class MigDevice(NamedTuple):
    """A MIG device of `nvidia-smi -L`: a compute instance, numbered in the order of the GPU instances' ids."""

    profile: str  # "3g.20gb", "1c.7g.80gb"
    index: int  # type: ignore[assignment]  # as of Gpu
    uuid: str  # "MIG-<uuid>", up to R460 "MIG-GPU-<uuid>/<gi>/<ci>"


class Listed(NamedTuple):
    """A GPU of `nvidia-smi -L` with its MIG devices."""

    index: int  # type: ignore[assignment]  # as of Gpu
    name: str
    uuid: str
    devices: tuple[MigDevice, ...] = ()


SELECT: tuple[Field, ...] = (
    Field("uuid", "uuid", (str,)),
    Field("pci", "pci", (str,)),
    Field("index", "index", (int,)),
    Field("model", "model", (str,)),
)

NOT_ONE = {
    "uuid": 'not a GPU\'s UUID such as "GPU-5f1c2a90-0000-4000-8000-000000000001"',
    "pci": 'not a PCI address with its domain such as "0000:17:00.0"',
    "index": "not an index from 0 on",
    "model": 'not a pattern over product names such as "*H100*"',
}

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
UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

# Programs that keep GPUs open without computing on them: they watch or serve them, and a layout may change under them.
ATTENDANTS = frozenset(
    (
        "nvidia-persistenced",
        "nv-fabricmanager",
        "nv-hostengine",
        "dcgm-exporter",
        "nvidia-device-plugin",
        "gpu-feature-discovery",
        "gpu-kubelet-plugin",  # of NVIDIA's DRA driver
        "nvidia-smi",
        "nvidia-powerd",
        "nvidia-imex",
        "nvlsm",
    )
)


def value(text: str) -> str | None:
    """A field's value; None for anything in square brackets and for the texts that stand for no value."""
    plain = text.strip()
    if plain.startswith("[") and plain.endswith("]"):
        return None
    return None if plain in NO_VALUE else plain


def no_value(unit: str, gpu: Gpu, what: str, text: str) -> StepFailed:
    """The fault of a GPU that shows no value where there should be one."""
    return StepFailed(
        f"{unit}: nvidia-smi prints {text} as the {what} of GPU {gpu.index} ({gpu.uuid}): see what the kernel log says "
        "of it (NVRM, Xid), and reset or replace it"
    )


def check_select(given: Mapping[str, Any], where: str) -> Select:
    """The selector of one mapping with exactly one of uuid, pci, index and model.

    `where` names its place, "mig-layout: gpus[0].select"; raises Refused.
    """
    kinds = [field for field in SELECT if given.get(field.wire) is not None]
    unknown = sorted(set(given) - {field.wire for field in SELECT})
    if unknown or len(kinds) != 1:
        found = ", ".join(unknown or [field.wire for field in kinds]) or "nothing"
        raise Refused(f"{where} takes exactly one of uuid, pci, index and model, not {found}: correct the settings")
    kind, types = kinds[0].wire, kinds[0].types
    wanted = given[kind]
    if type(wanted) not in types or not _is_one(kind, wanted):
        raise Refused(f"{where}.{kind} is {wanted!r}, {NOT_ONE[kind]}: correct the settings")
    return Select(kind, wanted)


def _is_one(kind: str, wanted: Any) -> bool:
    if kind == "uuid":
        return UUID.fullmatch(wanted) is not None
    if kind == "pci":
        return normal_pci(wanted) is not None
    return bool(wanted >= 0 if kind == "index" else wanted.strip())


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


def is_attendant(program: str) -> bool:
    """Whether the program watches or serves GPUs; the kernel's short name of it, 15 characters, counts too."""
    return program in ATTENDANTS or (len(program) == 15 and any(name.startswith(program) for name in ATTENDANTS))
