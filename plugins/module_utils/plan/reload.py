# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running module was loaded with, where the kernel does not show it.

One record a module, written before our options change under a module that is loaded. It holds for the boot that it
names, and until the module is unloaded.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..core.errors import StepFailed

FOLDER = "/var/lib/bcd-hostconfig/modules"
VERSION = 1


class Loaded(NamedTuple):
    """The boot, and our options line that the module was loaded with in it ("" for none)."""

    boot_id: str
    options: str


def record_path(module: str) -> str:
    """Where the module's record is."""
    return f"{FOLDER}/{module}"


def parse_record(path: str, text: str) -> Loaded:
    """The record; raises StepFailed for one that is not of our version."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise StepFailed(f"{path} is not a record of version {VERSION}: look at it, then move it away", retryable=False)
    return Loaded(str(found.get("boot_id", "")), str(found.get("options", "")))


def render_record(loaded: Loaded) -> str:
    """The record as JSON."""
    return json.dumps({"version": VERSION, **loaded._asdict()}, indent=1) + "\n"
