# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on the controller that only their writer may read."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from typing import Any


def write_json(path: str, document: Any) -> None:
    """Put a document into a file, of mode 0600, in one rename: whoever reads sees the old one or the new one whole.

    OSError where the directory is not there or cannot be written to.
    """
    folder, name = os.path.split(os.path.abspath(path))
    handle, beside = tempfile.mkstemp(prefix=f".{name}.", dir=folder)  # mkstemp's mode is 0600
    try:
        with os.fdopen(handle, "wb") as target:
            text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=True)
            target.write(text.encode("ascii") + b"\n")
            target.flush()
            os.fsync(target.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
