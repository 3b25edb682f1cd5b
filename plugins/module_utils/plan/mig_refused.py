# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host's GPUs cannot have the layouts that selectors ask for: which of them take no GPU that could."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.unknown import is_known
from .gpu import LACKING, Select, matches
from .gpu_unselected import there
from .mig import OFF, Layout
from .mig_state import Now, label
from .unit_names import MIG_LAYOUT as UNIT


def refused(overrides: list[tuple[Select, Layout]], now: Now) -> Refused:
    """The refusal of the selectors that take no GPU, or only GPUs without MIG; there is one."""
    faults = []
    for number, (select, layout) in enumerate(overrides):
        mine = [seen for seen in now.gpus if matches(select, seen.gpu)]
        which = f"gpus[{number}].select ({select.kind} {select.value!r})"
        without = [seen.gpu for seen in mine if is_known(seen.shown) and seen.shown.current in LACKING]
        if not mine:
            faults.append(f"{which} takes none of this host's GPUs, {there(select, [seen.gpu for seen in now.gpus])}")
        elif len(without) == len(mine) and layout.kind != OFF:
            faults.append(f"{which} takes only GPUs without MIG, {', '.join(map(label, without))}")
    return Refused(f"{UNIT}: {'; '.join(faults)}: correct the settings")
