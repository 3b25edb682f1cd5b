# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links in /dev/char that are missing. Imported only where one is."""

from __future__ import annotations

from ..core.step import run
from .container_devices import CREATE, FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.plan import Past, Todo
    from .container_devices import Unlinked

TRIED = "link device nodes"
WHATEVER = tuple(range(4))  # it exits with 0 where it links nothing, too: the links themselves are looked at
BY_HAND = ("/dev/nvidia-caps-", "/dev/nvidia-nvswitch", "/dev/nvidia-nvlink")  # these nvidia-ctk does not link


def plan(todo: Todo, unlinked: tuple[Unlinked, ...], past: Past) -> None:
    """Plan the missing links: by nvidia-ctk, and by hand what it does not make, or did not make in this boot."""
    theirs = [one for one in unlinked if not (one.taken or one.path.startswith(BY_HAND) or TRIED in past.tried)]
    if theirs:
        action = f"link NVIDIA's device nodes in {FOLDER}, so that a daemon-reload leaves containers their GPUs"
        todo.add(run(CREATE, action, ok=WHATEVER, tries=TRIED))
    for one in unlinked:
        if one not in theirs:
            with todo.lane(one.path):
                todo.add(run(("ln", "-sfn", one.path, one.link), f"link {one.path} as {one.link}"))
