# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has GPUs, as values: programs that compute on them, that have them open, and that only watch or serve them."""

from __future__ import annotations

from typing import NamedTuple


class Holder(NamedTuple):
    """A process that has a device node open."""

    pid: int
    program: str  # "nvidia-persistenced"


class App(NamedTuple):
    """A process that computes on a GPU; of one in a MIG device the GPU is the parent's."""

    gpu_uuid: str
    pid: int
    name: str


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


def is_attendant(program: str) -> bool:
    """Whether the program watches or serves GPUs; the kernel's short name of it, 15 characters, counts too."""
    return program in ATTENDANTS or (len(program) == 15 and any(name.startswith(program) for name in ATTENDANTS))
