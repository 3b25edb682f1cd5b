# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host that the gate of MIG layouts holds back is told of: which layout waits, and for whom.

Such a host converges to what it shows, and so says nothing by itself of what its pool asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..module_utils.plan.unit_names import MIG_LAYOUT
from .host_units import render


def layout_waits(
    units: Any, pool: Any, profile: Any = None, labels: Any = None, gpus: Iterable[Mapping[str, Any]] | None = None
) -> str:
    """What waits, in one sentence; "" where the units are not what the gate made of them, or nothing waits.

    `units` are those that the host is converged to, the rest is as host_units takes it. Raises InvalidInput.
    """
    looked = list(gpus or ())
    wanted = render(pool, profile, labels).get(MIG_LAYOUT)
    kept = render(pool, profile, labels, looked).get(MIG_LAYOUT)
    if wanted is None or kept is None or kept == wanted:
        return ""
    if not isinstance(units, Mapping) or units.get(MIG_LAYOUT) != kept:
        return ""
    users = "; ".join(_users(gpu) for gpu in looked if render(pool, profile, labels, [gpu]).get(MIG_LAYOUT) != wanted)
    return (
        f"the pool's layout {_text(wanted['layout'])} waits for {users}: the host keeps {_kept(kept)} until they are "
        "free, and the next run then changes it"
    )


def _users(gpu: Mapping[str, Any]) -> str:
    who = [f"allocation {name}" for name in gpu.get("allocations") or ()]
    who += [f"process {process.get('pid')} ({process.get('name')})" for process in gpu.get("processes") or ()]
    return f"GPU {gpu.get('index')} ({', '.join(who)})"


def _kept(settings: Mapping[str, Any]) -> str:
    return _text(settings["layout"]) if "layout" in settings else "what each GPU shows"


def _text(layout: Any) -> str:
    return layout if isinstance(layout, str) else json.dumps(layout, sort_keys=True)
