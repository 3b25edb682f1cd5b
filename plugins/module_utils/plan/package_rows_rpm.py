# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installed packages, as rpm lists them."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from .package_rows import Package

RPM_FORMAT = "%{NAME}|%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\n"


def asks_rpm(names: tuple[str, ...]) -> tuple[str, ...]:
    """Versions of the names; rpm prints nothing for what it does not know when it is asked so."""
    return ("rpm", "-qa", "--qf", RPM_FORMAT, *names)


def plain(version: str) -> str:
    """A version without the epoch 0, which nobody writes."""
    return version.removeprefix("0:")


def parse_rpm(text: str) -> list[Package]:
    """Rows `name|epoch:version-release`."""
    found = []
    for line in text.splitlines():
        row = re.fullmatch(r"([^|\s]+)\|(\d+:[^|\s]+)", line)
        if not row:
            raise StepFailed(f"rpm printed a line that is not known: {line!r}", retryable=False)
        found.append(Package(row.group(1), plain(row.group(2))))
    return found
