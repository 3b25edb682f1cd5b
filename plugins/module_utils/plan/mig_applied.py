# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the applied layouts say of a GPU: whether it is to have MIG. The layouts themselves are mig-layout's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gpu import Gpu, Select, matches
from .unit_names import MIG_LAYOUT

OFF = ("off", False)  # the word, unquoted in YAML, is false


def is_to_have_mig(applied: Mapping[str, Any], gpu: Gpu) -> bool | None:
    """Whether the layout of the unit mig-layout, as applied on this host, gives the GPU MIG; None: it says nothing.

    `applied` is what `Past.applied` has: wire settings by unit, which were checked before they were applied.
    """
    settings = applied.get(MIG_LAYOUT)
    if settings is None:
        return None
    for entry in settings.get("gpus") or ():
        chosen = ((kind, value) for kind, value in entry["select"].items() if value is not None)
        if any(matches(Select(kind, value), gpu) for kind, value in chosen):
            return _is_on(entry["layout"])
    return _is_on(settings["layout"]) if "layout" in settings else None


def _is_on(layout: Any) -> bool:
    return (layout.strip() if isinstance(layout, str) else layout) not in OFF
