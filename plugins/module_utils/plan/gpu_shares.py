# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By what means a GPU's clients share it, as a fact: of what gpu-sharing was told, and of the service that it keeps."""

from __future__ import annotations

from typing import Any

from ..core.errors import Refused
from ..core.step import File
from .gpu_sharing import MPS, TIMESLICE, Settings, check
from .gpu_sharing_service import served


def settings_of(recorded: Any) -> Settings | None:
    """What the unit was applied with, by root's record; None where it was not, or by other rules than today's."""
    try:
        return check(recorded) if isinstance(recorded, dict) else None
    except Refused:
        return None


def share_of(settings: Settings | None, service: File | None, gpu: str, divided: bool) -> dict[str, Any] | None:
    """{"mode", "replicas"} of a GPU by its UUID, None of one that nothing shares.

    MPS is on the GPUs that our service's file names, whoever may read the record of how many clients each has: where
    it is not read, `replicas` is None. Time slices are those of each GPU that is not `divided` by MIG.
    """
    if gpu in served(service):
        return {"mode": MPS, "replicas": settings.replicas if settings and settings.mode == MPS else None}
    if settings is not None and settings.mode == TIMESLICE and not divided:
        return {"mode": TIMESLICE, "replicas": settings.replicas}
    return None
