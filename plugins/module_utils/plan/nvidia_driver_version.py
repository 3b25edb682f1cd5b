# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version and flavour of the loaded driver, and its library's version, in the texts that tell them."""

from __future__ import annotations

import re

from ..core.errors import StepFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

VERSION_FILE = "/proc/driver/nvidia/version"
OPEN, PROPRIETARY = "open", "proprietary"
SONAME = "libnvidia-ml.so.1"
# Where distributions and NVIDIA's installer put the driver's library for programs of the host's own word size.
LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
)
NVRM = re.compile(r"NVRM version:\s+NVIDIA UNIX (?:(Open) Kernel Module for \S+|\S+ Kernel Module)\s+(\S+)")


class Loaded(NamedTuple):
    """The driver that the kernel has loaded: its full version, "580.95.05", and flavour, "open" or "proprietary"."""

    version: str
    flavour: str


def parse_nvrm(text: str) -> Loaded:
    """/proc/driver/nvidia/version; raises StepFailed for a text that names no driver."""
    found = NVRM.search(text)
    if not found:
        raise StepFailed(
            f"{VERSION_FILE} reads {text.strip()[:200]!r}, which names no driver: see what is loaded as nvidia"
        )
    return Loaded(found.group(2), OPEN if found.group(1) else PROPRIETARY)


def version_in(name: str) -> str | None:
    """The version in a library's file name, "libnvidia-ml.so.580.95.05"; None for another name."""
    found = re.fullmatch(r"libnvidia-ml\.so\.(\d+(?:\.\d+)+)", name.rpartition("/")[2])
    return found.group(1) if found else None


def by_number(version: str) -> tuple[int, ...]:
    """A version as numbers, to be compared."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())
