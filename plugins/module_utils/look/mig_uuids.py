# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The UUIDs of MIG devices by their instances, of which no one listing has both."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import StepFailed
from ..plan.gpu_listed import MigDevice
from ..plan.mig import ComputeInstance, parse_profile


def device_uuids(gpu: int, order: Sequence[ComputeInstance], devices: Sequence[MigDevice]) -> list[str]:
    """The UUIDs of a GPU's compute instances, which are in `order` by GPU instance and then by their own ids.

    nvidia-smi -L, of which `devices` are, numbers MIG devices so, and does not name their instances. Raises StepFailed
    where the two listings do not tell of the same.
    """
    shapes = [parse_profile(ci.profile_name) for ci in order], [parse_profile(one.profile) for one in devices]
    plain, listed = ([one._replace(attribute="") for one in some if one] for some in shapes)
    if len(order) != len(devices) or plain != listed:
        raise StepFailed(
            f"nvidia-smi -L lists {len(devices)} MIG devices on GPU {gpu}, and mig -lci {len(order)} others: "
            "look again once nobody changes them"
        )
    return [device.uuid for device in devices]
