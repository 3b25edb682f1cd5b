# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has which silicon: every claim by its GPU, so that asking costs what one assignment has and no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .assignment import Device
from .atoms import is_slot, parent


class _Parts:
    """What is claimed of one GPU: all of it, or parts, each by its id."""

    def __init__(self) -> None:
        self.whole = ""  # the allocation
        self.parts: dict[str, str] = {}  # id -> allocation
        self.first: dict[bool, str] = {}  # the first slot (True), the first MIG instance (False)

    def add(self, atom: str, is_whole: bool, allocation: str) -> None:
        if is_whole:
            self.whole = self.whole or allocation
            return
        self.parts.setdefault(atom, allocation)
        self.first.setdefault(is_slot(atom), atom)


class Claims:
    """The devices that allocations have; `passed`: GPUs that a VM has, or is to have, by UUID, with the instance."""

    def __init__(self, passed: Mapping[str, str] | None = None) -> None:
        self._passed = {gpu.lower(): instance for gpu, instance in (passed or {}).items()}
        self._gpus: dict[str, _Parts] = {}
        self._everything = ""

    def add(self, allocation: str, devices: Iterable[Device]) -> None:
        """Count the devices as the allocation's; one that does not tell its GPU, a MIG device's own UUID, is any."""
        for device in devices:
            gpu = parent(device.id)
            if gpu is None:
                self.add_every(allocation)
                continue
            self._gpus.setdefault(gpu.lower(), _Parts()).add(device.id, "/" not in device.id, allocation)

    def add_every(self, allocation: str) -> None:
        """Count every GPU as the allocation's: nobody can say which it has."""
        self._everything = self._everything or allocation

    def conflict(self, devices: Iterable[Device]) -> str:
        """Why an assignment cannot have the devices, in the words of its failure; "" when nothing is in the way."""
        ids = [device.id for device in devices]
        if len({atom.lower() for atom in ids}) < len(ids):
            return "a device is listed twice"
        return next(filter(None, map(self._taken, ids)), "")

    def _taken(self, atom: str) -> str:
        gpu = parent(atom) or atom
        instance = self._passed.get(gpu.lower())
        if instance is not None:
            return f"{gpu} is passed through to instance {instance}"
        parts = self._gpus.get(gpu.lower())
        whole = (parts.whole if parts else "") or self._everything
        if whole:
            return f"{gpu} is assigned to {whole}"
        if parts is None:
            return ""
        if atom in parts.parts:
            return f"{atom} is assigned to {parts.parts[atom]}"
        # A GPU in MIG mode has no slots: a MIG instance and a slot exclude each other as a part and the whole do.
        other = parts.first.get(not is_slot(atom), "") if "/" in atom else next(iter(parts.parts), "")
        return f"{gpu} has {other} assigned to {parts.parts[other]}" if other else ""
