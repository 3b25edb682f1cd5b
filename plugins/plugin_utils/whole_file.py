# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that whoever reads them sees whole, the old one or the new one."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

PRIVATE, PUBLIC = 0o600, 0o644  # modes


def write_whole(path: Path, text: str, mode: int) -> None:
    """Put a text into a file, of that mode, in one rename. OSError where its directory cannot be written to."""
    handle, new = tempfile.mkstemp(prefix=".bcd-", dir=path.parent)  # mkstemp's mode is PRIVATE
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if mode != PRIVATE:
            os.chmod(new, mode)
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def as_json(value: Any) -> str:
    """As JSON: the same value is the same bytes."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
