# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot service of MIG layouts where it has other commands than it should. Imported only then."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.plan import Past, Todo
from ..core.step import File
from . import systemd
from .mig_boot import is_there, render
from .mig_state import Now
from .systemd_seen import RELOAD

LINE = re.compile(
    r"ExecStart=-\S*nvidia-smi (?:mig )?-i (GPU-[0-9A-Fa-f-]+) (?:-mig 1|-cgi \S+(?: -C)?|-cci \S+ -gi \d+)"
)


def change_service(todo: Todo, now: Now, made: Mapping[str, tuple[str, ...]], past: Past) -> None:
    """Plan the service with the commands that are `made` by GPU; GPUs that are not among them keep those they had."""
    had = kept(now.service.file)
    order = [seen.gpu.uuid for seen in now.gpus]
    uuids = [*order, *sorted(had.keys() - {*order})]
    lines = [line for uuid in uuids for line in made.get(uuid, had.get(uuid, ()))]
    if is_there(now, lines) and RELOAD not in past.owed:
        return
    due = systemd.keep_unit(todo, now.service, render(lines)) if lines else systemd.drop_unit(todo, now.service)
    systemd.reload(todo, now.systemd, (now.service,), due, past)


def kept(now: File | None) -> Mapping[str, tuple[str, ...]]:
    """The commands that our service has, by GPU; nothing else in it is taken over."""
    found: dict[str, tuple[str, ...]] = {}
    for line in (now.text if now is not None and now.regular else "").splitlines():
        match = LINE.fullmatch(line)
        if match:
            found[match.group(1)] = (*found.get(match.group(1), ()), line)
    return found
