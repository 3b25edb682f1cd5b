# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of ours: written whole when they differ, removed when they are there."""

from __future__ import annotations

from ..core.plan import Todo
from ..core.step import File, remove, write

AGAIN = " again: it is not as we keep it"
HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"


def is_as(now: File | None, text: str, mode: int = 0o644) -> bool:
    """Whether the file is exactly ours: a regular file of root's with the text and the mode."""
    return now is not None and now.regular and now.uid == 0 and now.mode == mode and now.text == text


def keep(
    todo: Todo,
    path: str,
    text: str,
    now: File | None,
    *,
    mode: int = 0o644,
    lane: str = "",
    owes: tuple[str, ...] = (),
    disruption: str = "none",
    why: str = AGAIN,
) -> bool:
    """Plan the write of a file that is not as it should be; whether one was planned. `why` ends its sentence."""
    if is_as(now, text, mode):
        return False
    action = f"write {path}{'' if now is None else why}"
    todo.add(write(path, text, action, mode=mode, lane=lane, owes=owes, disruption=disruption))
    return True


def drop(
    todo: Todo, path: str, now: File | None, *, lane: str = "", owes: tuple[str, ...] = (), disruption: str = "none"
) -> bool:
    """Plan the removal of a file that is there; whether one was planned."""
    if now is None:
        return False
    todo.add(remove(path, f"remove {path}", lane=lane, owes=owes, disruption=disruption))
    return True
