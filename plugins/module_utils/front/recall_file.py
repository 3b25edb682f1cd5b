# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of a quiet turn, and its file: root's alone, one for each code that ran lately (see front.recall)."""

# The very type of a value decides here.
# pylint: disable=unidiomatic-typecheck

from __future__ import annotations

import os

from ..core import rootfs
from ..core.errors import Fault
from ..core.question import is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..core.outcome import Outcome
    from ..core.question import Question


def entry(outcome: Outcome, key: str, asked: Mapping[Question, str]) -> dict[str, Any] | None:
    """What is kept of a turn with this key that asked these questions, with the digests of their answers.

    None of one that is not quiet: it did something, or left more to do than a reboot.
    """
    if not _is_quiet(outcome):
        return None
    return {
        "key": key,
        "state": outcome.state,
        "pending": outcome.pending,
        "conditions": outcome.conditions,
        "notes": outcome.notes,
        "found": outcome.found,
        "asked": [(answer, *question) for question, answer in asked.items()],
    }


def _is_quiet(outcome: Outcome) -> bool:
    if outcome.failure is not None or outcome.changed or outcome.steps or outcome.diff or outcome.needs:
        return False
    return all(wait.reason == "RebootRequired" for wait in outcome.pending) and _is_kept_whole(outcome.found)


def _is_kept_whole(found: Any) -> bool:
    """Whether JSON gives it back, lists for tuples, which results do not tell apart."""
    if isinstance(found, dict):
        return all(type(key) is str and _is_kept_whole(item) for key, item in found.items())
    return all(map(_is_kept_whole, found)) if isinstance(found, (list, tuple)) else is_plain(found)


def keep(path: str, text: str, most: int) -> None:
    """Replace the file, and of those beside it keep the `most` newest; a disk that takes nothing is no fault."""
    above = os.path.dirname(path)
    try:
        folder = rootfs.open_directory(above, create=True)
        try:
            os.fchmod(folder, 0o700)
            rootfs.write(path, text.encode(), 0o600)
            _prune(folder, os.path.basename(path), most)
        finally:
            os.close(folder)
    except (Fault, OSError):
        pass


def _prune(folder: int, newest: str, most: int) -> None:
    others = [name for name in os.listdir(folder) if name != newest]
    changed = {name: os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns for name in others}
    for name in sorted(others, key=changed.__getitem__, reverse=True)[most - 1 :]:
        os.unlink(name, dir_fd=folder)
