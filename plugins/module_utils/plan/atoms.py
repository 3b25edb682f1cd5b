# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The devices that an allocation may have, by their ids.

A whole GPU's is its UUID, a MIG device's `<gpu>/gi<g>/ci<c>`, a slot's on a GPU that is shared `<gpu>/s<k>`. What
others name by a MIG device's own UUID is one too.
"""

from __future__ import annotations

import re
from typing import Any

GPU, MIG = "gpu", "gpu.mig"  # classes
ATOM = re.compile(r"GPU-[^/\s]+(?:/gi\d+/ci\d+|/s\d+)?|MIG-\S+")
SLOT = re.compile(r"[^/]+/s\d+")


def is_atom(given: Any) -> bool:
    """Whether it is the id of a device."""
    return isinstance(given, str) and ATOM.fullmatch(given) is not None


def is_gpu(given: Any) -> bool:
    """Whether it is the id of a whole GPU, its UUID."""
    return is_atom(given) and str(given).startswith("GPU-") and "/" not in given


def is_slot(atom: str) -> bool:
    """Whether it is a slot, which it takes a shared GPU for."""
    return SLOT.fullmatch(atom) is not None


def mig_device(gpu: str, gi: int, ci: int) -> str:
    """The id of the compute instance of a GPU instance."""
    return f"{gpu}/gi{gi}/ci{ci}"


def parent(atom: str) -> str | None:
    """The UUID of a device's GPU; None for a MIG device's own UUID, which does not say. Up to R460 it does."""
    plain = atom[len("MIG-") :] if atom.startswith("MIG-GPU-") else atom
    return None if plain.startswith("MIG-") else plain.partition("/")[0]
