# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU dies that the MPS daemon serves: the daemon stays, and the GPUs that answer are shared as before."""

from __future__ import annotations

import re

from ..core.plan import Todo
from .files import is_as
from .gpu import Gpu
from .gpu_sharing_daemon import MEMORY, render
from .gpu_sharing_seen import Now
from .gpu_sharing_service import SERVICE, Share, served
from .unit_names import GPU_SHARING as UNIT

LIMIT = re.compile(rf"set_{MEMORY} (\d+) (\d+)M")


def as_it_runs(
    todo: Todo, now: Now, shares: tuple[Share, ...], dead: tuple[Gpu, ...], percentage: int
) -> tuple[Share, ...]:
    """What the service serves, where only the dead GPUs keep it from being as it should be; says what waits.

    `shares` are what the GPUs that answer are to have, and what is returned where something else differs too. A GPU
    that fell off the bus has lost its UUID: as many as are dead may be missing.
    """
    there = served(now.unit.file)
    named = {gpu.uuid for gpu, _card in now.gpus} - {gpu.uuid for gpu in dead}
    lost = [uuid for uuid in there if uuid not in named]
    if not lost or len(lost) > len(dead) or now.unit.file is None:
        return shares
    limits = dict(LIMIT.findall(now.unit.file.text))
    mine = {share.uuid: share for share in shares}
    runs = tuple(
        Share(uuid, int(limits.get(str(at), "0"))) if uuid in lost else mine[uuid]
        for at, uuid in enumerate(there)
        if uuid in lost or uuid in mine
    )
    if not is_as(now.unit.file, render(now.programs, runs, percentage)):
        return shares
    todo.wait(
        "NotReady",
        f"{UNIT}: {SERVICE} goes on with the GPUs that answer, and is not restarted without {', '.join(lost)}: reset "
        "or replace what does not answer, or reboot the node",
    )
    return runs
