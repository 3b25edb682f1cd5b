# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MIG layouts that GPUs have, in the form of the settings."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.plan import Plan, Todo
from ..plan.gpu import LACKING, MODES, Gpu
from ..plan.mig_state import QUERIED, label
from ..plan.mig_text import layout_of
from ..plan.unit_names import MIG_LAYOUT as UNIT
from .each_gpu import each_gpu
from .mig import Tables
from .mig_layout import instances


def gathered(host: Host) -> Plan:
    """The layout of every GPU that has MIG, as the option `gpus` takes it with `select: {uuid: ...}`.

    A GPU whose mode waits for a reset has its layout of now, and the mode that waits; the reset is waited for.
    Raises what a GPU that does not answer says: an export that leaves one out is no export.
    """
    tables = Tables(host)
    todo = Todo()
    found = []
    for gpu, row in each_gpu(host, QUERIED):
        if row["mig.mode.current"] not in MODES:
            _refuse_dead(gpu, row["mig.mode.current"])
            continue
        shown = instances(tables, gpu, row)
        on = MODES.get(shown.pending, shown.on)
        if on is not shown.on:
            todo.wait("RebootRequired", _waits(gpu, on))
        found.append(
            {
                "uuid": gpu.uuid,
                "index": gpu.index,
                "name": gpu.name,
                "layout": layout_of(shown.on, shown.gis, shown.cis),
                "pending": None if on is shown.on else "on" if on else "off",
            }
        )
    todo.found("gpus", found)
    return todo.plan()


def _waits(gpu: Gpu, on: bool) -> str:
    return (
        f"{UNIT}: MIG mode of {label(gpu)} is still {'off' if on else 'on'}, and becomes {'on' if on else 'off'} at a "
        "GPU reset: give the GPU its layout, for which it is reset where nothing holds it, or reboot the node"
    )


def _refuse_dead(gpu: Gpu, shown: str) -> None:
    if shown not in LACKING:
        raise StepFailed(f"{label(gpu)} shows {shown} for its MIG mode: see the kernel's log for it")
