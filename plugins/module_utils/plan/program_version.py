# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version in what a program prints of itself for --version."""

from __future__ import annotations

import re

Release = tuple[int, ...]

VERSION = re.compile(r"\bv?((\d+)\.(\d+)(?:\.(\d+))?[^\s,]*)")


def version_in(said: str) -> str:
    """The first version, as printed, "28.5.2+dfsg4"; "" where there is none."""
    found = VERSION.search(said)
    return found.group(1) if found else ""


def release_in(said: str) -> Release | None:
    """The first version's two or three leading numbers, to be compared; None where there is none."""
    found = VERSION.search(said)
    return tuple(int(number) for number in found.groups()[1:] if number is not None) if found else None
