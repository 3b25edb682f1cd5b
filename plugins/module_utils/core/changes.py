# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit's steps came to: read back from the host, never from what a program said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .errors import Unreadable
from .host import Host
from .step import File, Step


class Changes:
    """What has moved so far: `diff` has one entry a file or value, `ran` the keys of the programs that ran."""

    def __init__(self) -> None:
        self.diff: list[Mapping[str, str]] = []
        self.ran: set[tuple[object, ...]] = set()

    def took(self, step: Step, before: File | None, after: File | None, predicted: bool) -> None:
        """A step was taken; what was tried before in this boot counts only if the read-back moved."""
        if step.retry and (predicted or step.kind == "run"):
            return
        if step.kind == "run":
            self.ran.add(step.key)
        elif before != after:
            from .difference import difference

            self.diff.append(difference(step, before, after))

    def moved(self, planned: Iterable[Step]) -> bool:
        """Whether a value or file reads otherwise, or a program ran that is not planned again."""
        return bool(self.diff) or bool(self.ran - {step.key for step in planned})


def shown(host: Host, step: Step) -> File | None:
    """What the step's path shows now: a kernel value by its text, a file by its text and mode."""
    if step.kind == "run":
        return None
    if step.kind == "set":
        try:
            text = host.read(step.path)
        except Unreadable:  # some values can be read only once they are set
            return None
        return None if text is None else File(text)
    return host.file(step.path)


def value(seen: File | None) -> str:
    """A kernel value as what is shown has it."""
    return "" if seen is None else seen.text.strip()
