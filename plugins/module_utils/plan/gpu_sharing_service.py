# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPS daemon as a service of ours: its names, and what its unit file tells of whom it serves."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..core.step import File
from .files import HEADER

SERVICE = "bcd-mps.service"
WANTED_BY = "multi-user.target"
PIPE = "/run/nvidia-mps"  # what a client has to reach the daemon by
RESTART = f"restart {SERVICE}"  # the debt
VISIBLE = re.compile(r"^Environment=CUDA_VISIBLE_DEVICES=(.*)$", re.MULTILINE)


class Programs(NamedTuple):
    """Where nvidia-smi and the daemon lie; None: not installed."""

    smi: str | None
    control: str | None


class Share(NamedTuple):
    """One GPU that the daemon serves, and the memory of it that a client may take, in MiB."""

    uuid: str
    memory: int


class Limits(NamedTuple):
    """What the daemon says is in force: percent of the SMs, and the memory by the number that it gives each GPU.

    An answer that is none of these is kept as it was printed, for messages.
    """

    percentage: str
    memory: tuple[str, ...]


def is_ours(file: File | None) -> bool:
    """Whether the unit file is one that we wrote."""
    return file is not None and file.regular and file.text.startswith(HEADER)


def served(file: File | None) -> tuple[str, ...]:
    """The UUIDs that our unit file serves, in the daemon's order: the record of whose compute mode we set."""
    found = VISIBLE.search(file.text) if file is not None and is_ours(file) else None
    return tuple(uuid for uuid in found.group(1).split(",") if uuid) if found else ()
