# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written, and taken away, where our drop-in of containerd or its import is not as it should be."""

from __future__ import annotations

from .container_runtime_change import refuse_link
from .containerd_seen import CONFIG
from .files import AGAIN, is_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    from .containerd_seen import Containerd
else:
    from ..core.named import NamedTuple


class Edit(NamedTuple):
    """A file as it is to be; `text` None: gone. `read`: containerd reads something else in it than before."""

    path: str
    text: str | None
    action: str
    mode: int = 0o644
    read: bool = True


def edits(unit: str, seen: Containerd, text: str, config: str, mode: int) -> list[Edit]:
    """The drop-in before its import: a pass that dies between them leaves a file that nobody reads.

    Raises Refused where something that is no file is in their place.
    """
    refuse_link(seen.path, seen.ours, unit)
    if config != seen.text:
        refuse_link(CONFIG, seen.config, unit)
    found = []
    if not is_as(seen.ours, text, mode):
        action = f"write {seen.path}{'' if seen.ours is None else AGAIN}"
        found.append(Edit(seen.path, text, action, mode, read=seen.ours is None or seen.ours.text != text))
    if config != seen.text:
        action = f"import {seen.path.rpartition('/')[0]}/*.toml in {CONFIG}" if seen.text else f"write a first {CONFIG}"
        action += f", which brings {', '.join(seen.newly)} along" if seen.newly else ""
        found.append(Edit(CONFIG, config, action, seen.config.mode if seen.config else 0o644))
    found += [Edit(path, None, f"remove {path}, which is ours and in another place now") for path in seen.stale]
    return found
