# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows when it is looked at, as values: files, and what programs say."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from .named import NamedTuple


class File(NamedTuple):
    """A file as a look found it. A symbolic link, a device or a directory has `regular` false and no text."""

    text: str
    mode: int = 0o644
    uid: int = 0
    regular: bool = True


class Answer(NamedTuple):
    """What a read-only program said: its exit status, standard output and standard error."""

    rc: int
    out: str
    err: str = ""


class Ask(NamedTuple):
    """A read-only question about a planner's own candidate: `{name}` in argv stands for the private file `name`.

    `follows`: the paths from which the answer follows, with the private files, as that of Host.follows does; none: it
    follows from more than that.
    """

    argv: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()
    follows: tuple[str, ...] = ()
