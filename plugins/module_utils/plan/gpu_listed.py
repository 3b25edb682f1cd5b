# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as `nvidia-smi -L` lists them, with their MIG devices."""

from __future__ import annotations

from typing import NamedTuple


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
