# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that compute on GPUs, as nvidia-smi lists them."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.gpu_users import App
from ..plan.smi import APPS, COMPUTING
from .smi import answered, parse_csv


def compute_apps(host: Host, gpu: str = "") -> tuple[App, ...]:
    """The processes that compute, on all GPUs or the one that `gpu` names for -i."""
    where = ("-i", gpu) if gpu else ()
    rows = parse_csv(answered(host, *APPS[1:], *where, silent=True), COMPUTING)
    for row in rows:
        if not row["pid"].isdecimal():
            raise StepFailed(f"nvidia-smi shows a compute process with the id {row['pid']!r}, which is no process id")
    return tuple(App(row["gpu_uuid"], int(row["pid"]), row["process_name"]) for row in rows)
