# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running module was loaded with, where the kernel does not show it.

One record a module, written before our options change under a module that is loaded. It holds for the boot that it
names, and until the module is unloaded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.state import STATE, parse, render

FOLDER = f"{STATE}/modules"


class LoadedWith(NamedTuple):
    """The boot, and our options line that the module was loaded with in it ("" for none)."""

    boot_id: str
    options: str


def record_path(module: str) -> str:
    """Where the module's record is."""
    return f"{FOLDER}/{module}"


def parse_record(path: str, text: str) -> LoadedWith:
    """The record; raises StepFailed for one that is damaged or not of our version."""
    found = parse(path, text, _is_whole)
    return LoadedWith(found["boot_id"], found["options"])


def _is_whole(record: dict[str, Any]) -> bool:
    return all(isinstance(record.get(key), str) for key in LoadedWith._fields)


def render_record(loaded: LoadedWith) -> str:
    """The record as JSON."""
    return render(loaded._asdict())
