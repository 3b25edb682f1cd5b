# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of simulated GPUs, as values that go into a file and come back."""

from __future__ import annotations

from typing import Any

from .plain import dataclass, field
from .products import GpuProfile, Product, product

# nvidia-smi's words for an NVML code, and the exit status that it makes of it: the code itself for these, else 255.
WORDS = {
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    6: "Not Found",
    8: "Insufficient External Power",
    9: "Driver Not Loaded",
    10: "Timeout",
    12: "NVML Shared Library Not Found",
    15: "GPU is lost",
    16: "GPU requires reset",
    17: "GPU access blocked by the operating system",
    18: "Driver/library version mismatch",
    19: "In use by another client",
    23: "Insufficient Resources",
    26: "Requested functionality has been deprecated",
    29: "Resource not in correct state to perform requested operation",
    999: "Unknown Error",
}
KEPT = frozenset((2, 3, 4, 6, 8, 9, 12, 15, 17, 18, 19, 23))


class Nvml(Exception):
    """An NVML call answered an error."""

    def __init__(self, code: int) -> None:
        super().__init__(WORDS[code])
        self.code = code
        self.words = WORDS[code]
        self.rc = code if code in KEPT else 255


@dataclass
class Ci:
    """A compute instance: its profile is a number of slices inside the GPU instance."""

    id: int
    slices: int
    start: int


@dataclass
class Gi:
    """A GPU instance."""

    id: int
    profile: int
    start: int
    cis: list[Ci] = field(default_factory=list)


@dataclass
class Process:
    """A compute process on a GPU, inside a MIG device when `gi` is given."""

    pid: int
    name: str
    memory_mib: int = 512
    gi: int | None = None
    ci: int = 0


@dataclass
class Card:
    """A GPU. `dead`: "" lives; "fields": values print as [GPU is lost]; "handle": nothing can be asked of it."""

    product: str
    uuid: str
    pci: str  # 00000000:1A:00.0
    minor: int
    mig: bool = False
    mig_pending: bool = False
    instances: list[Gi] = field(default_factory=list)
    power: float = 0.0
    ecc: bool = True
    ecc_pending: bool = True
    compute_mode: str = "DEFAULT"
    persistence: bool = True
    processes: list[Process] = field(default_factory=list)
    dead: str = ""
    fabric: str = ""  # "": no fabric; else the state, Completed or In Progress

    @property
    def kind(self) -> Product:
        """What board it is."""
        return product(self.product)

    @property
    def persistent_mode(self) -> bool:
        """Whether MIG mode survives a driver reload and a reboot."""
        return self.kind.resets_for_mig

    def offered(self, branch: int) -> tuple[GpuProfile, ...]:
        """The profiles that this driver branch lists for it."""
        return tuple(one for one in self.kind.profiles if one.since <= branch)

    def profile(self, number: int) -> GpuProfile:
        """The profile of an id."""
        return next(one for one in self.kind.profiles if one.id == number)

    def ordered(self) -> list[Gi]:
        """Instances as nvidia-smi lists and destroys them: by the profile's slices, then by id."""
        return sorted(self.instances, key=lambda one: (self.profile(one.profile).slices, one.id))

    def devices(self) -> list[tuple[Gi, Ci]]:
        """MIG devices in the order of their numbers."""
        return [(gi, ci) for gi in sorted(self.instances, key=lambda one: one.id) for ci in gi.cis]

    def device_uuid(self, gi: Gi, ci: Ci, branch: int) -> str:
        """A MIG device's UUID: by name up to the 460 branch, a version 5 UUID after."""
        if branch < 470:
            return f"MIG-{self.uuid}/{gi.id}/{ci.id}"
        import uuid

        return f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{self.uuid}/{gi.id}/{ci.id}')}"

    def device_name(self, gi: Gi, ci: Ci) -> str:
        """3g.40gb, or 1c.3g.40gb for a part of the compute slices."""
        return ci_name(self.profile(gi.profile), ci.slices)


def ci_name(profile: GpuProfile, slices: int) -> str:
    """A compute instance profile's name inside a GPU instance."""
    return profile.name if slices == profile.compute else f"{slices}c.{profile.name}"


CI_IDS = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}


def ci_slices(profile: GpuProfile) -> list[int]:
    """The compute instance profiles of a GPU instance, smallest first, its whole last."""
    return [n for n in sorted(CI_IDS) if n < profile.compute and (n != 3 or profile.compute == 7)] + [profile.compute]


def from_json(values: dict[str, Any]) -> Card:
    """From plain values."""
    plain = dict(values)
    plain["instances"] = [Gi(**{**gi, "cis": [Ci(**ci) for ci in gi["cis"]]}) for gi in plain["instances"]]
    plain["processes"] = [Process(**one) for one in plain["processes"]]
    return Card(**plain)
