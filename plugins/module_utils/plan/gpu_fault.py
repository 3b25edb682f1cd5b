# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that shows no value where there should be one."""

from __future__ import annotations

from ..core.errors import StepFailed
from .gpu import Gpu


def no_value(unit: str, gpu: Gpu, what: str, text: str) -> StepFailed:
    """The fault of a GPU that shows no value where there should be one."""
    return StepFailed(
        f"{unit}: nvidia-smi prints {text} as the {what} of GPU {gpu.index} ({gpu.uuid}): see what the kernel log says "
        "of it (NVRM, Xid), and reset or replace it"
    )
