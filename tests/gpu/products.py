# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Products of the simulated GPUs: MIG profiles from mig_profiles.json, power and memory from public tables."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import NamedTuple

PROFILES_FILE = os.path.join(os.path.dirname(__file__), "mig_profiles.json")
ENGINES = ("sm", "copy_engines", "decoders", "encoders", "jpeg", "ofa")


class GpuProfile(NamedTuple):
    """A GPU instance profile: where it may lie, and what -lgip says of it."""

    id: int
    name: str
    slices: int
    compute: int
    memory_gib: float
    most: int  # instances of it at a time, whatever the room
    starts: tuple[int, ...]
    size: int
    since: int  # the first driver branch that offers it
    engines: tuple[int, int, int, int, int, int]  # SM, CE, DEC, ENC, JPEG, OFA


class Product(NamedTuple):
    """A GPU board: names, memory, power range in watts (none: no power management), MIG."""

    key: str
    name: str  # as nvidia-smi prints it
    architecture: str
    pci_id: str  # device id, 0x2330
    memory_mib: int
    power: tuple[int, int] | None  # least and most; the default is the most
    ecc: bool
    units: int = 0  # placement units; 0: no MIG
    profiles: tuple[GpuProfile, ...] = ()

    @property
    def mig(self) -> bool:
        """Whether the product can be partitioned."""
        return bool(self.profiles)

    @property
    def resets_for_mig(self) -> bool:
        """Ampere: the driver resets the GPU to change the mode, and the mode survives a reboot."""
        return self.architecture == "Ampere"


# What the profile table lacks: nvidia-smi's name, and the range of power limits.
NAMES: dict[str, tuple[str, tuple[int, int]]] = {
    "A30-24GB": ("NVIDIA A30", (100, 165)),
    "A100-40GB": ("NVIDIA A100-SXM4-40GB", (100, 400)),
    "A100-80GB": ("NVIDIA A100-SXM4-80GB", (100, 400)),
    "A100-96GB (PG506)": ("NVIDIA PG506-96", (100, 400)),
    "H100-80GB": ("NVIDIA H100 80GB HBM3", (200, 700)),
    "H100-NVL-94GB": ("NVIDIA H100 NVL", (200, 400)),
    "GH200-96GB": ("NVIDIA GH200 480GB", (200, 900)),
    "GH200-144GB": ("NVIDIA GH200 144G HBM3e", (200, 900)),
    "H200-141GB": ("NVIDIA H200", (200, 700)),
    "B200-180GB": ("NVIDIA B200", (200, 1000)),
    "GB200-186GB": ("NVIDIA GB200", (200, 1200)),
    "B300": ("NVIDIA B300 SXM6 AC", (200, 1100)),
    "GB300": ("NVIDIA GB300", (200, 1400)),
    "RTX-PRO-6000-Blackwell": ("NVIDIA RTX PRO 6000 Blackwell Server Edition", (300, 600)),
    "RTX-PRO-5000-Blackwell": ("NVIDIA RTX PRO 5000 Blackwell", (150, 300)),
}
PLAIN = (
    Product("T4", "Tesla T4", "Turing", "0x1eb8", 15360, (60, 70), True),
    Product("A2", "NVIDIA A2", "Ampere", "0x25b6", 15356, (35, 60), True),
    Product("L40S", "NVIDIA L40S", "Ada", "0x26b9", 46068, (100, 350), True),
    Product("RTX-4090", "NVIDIA GeForce RTX 4090", "Ada", "0x2684", 24564, (150, 600), False),
    Product("V100", "Tesla V100-SXM2-32GB", "Volta", "0x1db5", 32768, (150, 300), True),
    Product("P100", "Tesla P100-PCIE-16GB", "Pascal", "0x15f8", 16384, (125, 250), True),
    # A board whose power cannot be managed and which has no ECC.
    Product("GT-1030", "NVIDIA GeForce GT 1030", "Pascal", "0x1d01", 2048, None, False),
)
# What nobody has published of the RTX PRO 5000: ids as on its larger sister, and quarters to lie in.
UNKNOWN_5000: dict[str, tuple[int, tuple[int, ...], int]] = {
    "1g.12gb": (14, (0, 1, 2, 3), 1),
    "1g.12gb+me": (21, (0, 1, 2, 3), 1),
    "1g.12gb+gfx": (47, (0, 1, 2, 3), 1),
    "1g.12gb-me": (67, (0, 1, 2, 3), 1),
    "2g.24gb-me": (66, (0, 2), 2),
    "4g.48gb": (0, (0,), 4),
    "4g.48gb+gfx": (32, (0,), 4),
}
SINCE = {"1_SLICE_REV1": 470, "1_SLICE_REV2": 525, "2_SLICE_REV1": 525}


@cache
def products() -> dict[str, Product]:
    """Every product by its key: the fifteen with MIG, then those without."""
    found = {}
    with open(PROFILES_FILE, encoding="utf-8") as kept:
        rows = json.load(kept)["products"]
    for row in rows:
        name, power = NAMES[row["key"]]
        units = int(row["placement_units"] or 4)
        found[row["key"]] = Product(
            row["key"],
            name,
            row["architecture"],
            row["pci_device_ids"][0][:6].lower(),
            int(row["memory_total_mib"] or row["memory_gb_marketing"] * 1000),
            power,
            True,
            units,
            tuple(_profile(one, units, int(row["memory_gb_marketing"])) for one in row["profiles"]),
        )
    found.update((one.key, one) for one in PLAIN)
    return found


def product(key: str) -> Product:
    """A product by its key ("H100-80GB") or its full name."""
    known = products()
    if key in known:
        return known[key]
    return next(one for one in known.values() if one.name == key)


def _profile(row: dict[str, object], units: int, memory_gb: int) -> GpuProfile:
    """A row of the table; what the table has not seen is filled with what its neighbours suggest."""
    name = str(row["name"])
    places: dict[str, object] = row["placements"]  # type: ignore[assignment]
    number, starts, size = row["id"], places["starts"], places["size"]
    if number is None:
        number, starts, size = UNKNOWN_5000[name]
    memory = row["memory_gib"]
    engines = [row[key] if row[key] is not None else 18 * int(str(row["gpu_slices"])) for key in ENGINES]
    return GpuProfile(
        int(str(number)),
        name,
        int(str(row["gpu_slices"])),
        int(str(row["compute_slices"])),
        float(str(memory)) if memory is not None else round(memory_gb * int(str(size)) / units - 1, 2),
        int(str(row["max_count"])),
        tuple(starts),  # type: ignore[arg-type]
        int(str(size)),
        SINCE.get(str(row.get("nvml_profile")), 0) if units == 8 or memory_gb == 24 else 0,
        tuple(int(str(number)) for number in engines),  # type: ignore[arg-type]
    )
