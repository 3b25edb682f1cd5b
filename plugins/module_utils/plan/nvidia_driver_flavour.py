# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which flavour of the driver a host's GPUs need, and which branches can run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .gpu_chips import UNKNOWN, PciGpu, generation
from .nvidia_driver_version import OPEN, PROPRIETARY

FIRST_OPEN = 515  # the first branch that has open modules
OPEN_BY_DEFAULT = 560
FLAVOURS = (OPEN, PROPRIETARY)
PASSED_THROUGH = "vfio-pci"  # the driver of a GPU that a virtual machine gets


class Flavour(NamedTuple):
    """The flavour to install, "open" or "proprietary", and what is to be said about it."""

    name: str
    notes: tuple[str, ...] = ()


def served(gpus: Sequence[PciGpu]) -> tuple[PciGpu, ...]:
    """The GPUs that NVIDIA's driver is for: those that are not handed to virtual machines."""
    return tuple(gpu for gpu in gpus if gpu.driver != PASSED_THROUGH)


def flavour_for(branch: int, asked: bool | None, gpus: Sequence[PciGpu], version: str = "") -> Flavour:
    """The flavour for `gpus`, as `asked` (open or not) or, by default, as they need it.

    `version` is the one that was given, for messages. Raises Refused where no driver of the branch, or none of the
    flavour asked for, can run one of them.
    """
    for gpu in gpus:
        kind = generation(gpu.device)
        if branch < kind.first or (kind.last and branch > kind.last):
            from .nvidia_driver_unfit import not_served

            raise not_served(gpu, branch, version)
    only = {flavour: [gpu for gpu in gpus if generation(gpu.device).flavours == (flavour,)] for flavour in FLAVOURS}
    if only[OPEN] and only[PROPRIETARY]:
        from .nvidia_driver_unfit import not_both

        raise not_both(only[OPEN][0], only[PROPRIETARY][0])
    needed = next((flavour for flavour in FLAVOURS if only[flavour]), None)
    flavour = needed or (OPEN if branch >= OPEN_BY_DEFAULT else PROPRIETARY)
    if asked is not None:
        flavour = OPEN if asked else PROPRIETARY
        if needed not in (None, flavour):
            from .nvidia_driver_unfit import not_as_asked

            raise not_as_asked(only[str(needed)][0], str(needed), asked)
    if flavour == OPEN and branch < FIRST_OPEN:
        from .nvidia_driver_unfit import not_open

        raise not_open(branch, version, FIRST_OPEN)
    return Flavour(flavour, _notes(flavour, gpus))


def _notes(flavour: str, gpus: Sequence[PciGpu]) -> tuple[str, ...]:
    strange = [gpu for gpu in gpus if generation(gpu.device) is UNKNOWN]
    if not strange:
        return ()
    from .nvidia_driver_unfit import not_known

    return (not_known(strange, flavour),)
