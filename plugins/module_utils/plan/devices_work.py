# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parts of one plan over the holds share: the section, what the host shows, and the notepads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import NotReady, StepFailed
from ..core.plan import Todo
from .assignment import Assignment, Section
from .device_atoms import by_uuid
from .devices_seen import Card, Now

if TYPE_CHECKING:
    from .events import Journal
    from .kube_releases import Turn


class Work(NamedTuple):
    """One planning. `notes` are said once, in their order.

    `wanted` are the section's assignments by allocation, without those whose pending release is not taken back: it ends
    first, and they are bound anew then.
    """

    todo: Todo
    section: Section
    now: Now
    journal: Journal
    wanted: Mapping[str, Assignment]
    releases: Turn
    notes: dict[str, None]
    indexed: list[Mapping[str, Card]]  # of the GPUs by UUID, once they are known

    def cards(self) -> Mapping[str, Card]:
        """The GPUs by UUID; raises NotReady while nvidia-smi does not tell: no driver yet, or one that hangs."""
        if not self.indexed:
            try:
                self.indexed.append(by_uuid(self.now.cards))
            except StepFailed as fault:
                raise NotReady(fault.message) from None
        return self.indexed[0]

    def note(self, *sentences: str) -> None:
        """Say something once, however many holds it is true of."""
        self.notes.update(dict.fromkeys(sentences))
