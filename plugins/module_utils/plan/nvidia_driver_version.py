# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version and flavour of NVIDIA's driver, in the texts that tell them."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..core.errors import StepFailed

VERSION_FILE = "/proc/driver/nvidia/version"
OPEN, PROPRIETARY = "open", "proprietary"
# Debian's own packages name the module nvidia-current.
MODULE_NAMES = ("nvidia", "nvidia-current")
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
INSTALL_DEBT = "packages"  # an installation that a killed pass may have left half-way
NVRM = re.compile(r"NVRM version:\s+NVIDIA UNIX (?:(Open) Kernel Module for \S+|\S+ Kernel Module)\s+(\S+)")
FULL_VERSION = re.compile(r"[1-9][0-9]{0,3}(?:\.[0-9]+){1,3}")


class Loaded(NamedTuple):
    """The driver that the kernel has loaded: its full version, "580.95.05", and flavour, "open" or "proprietary"."""

    version: str
    flavour: str


class OnDisk(NamedTuple):
    """The driver's module file for the running kernel. `signer` is "" where the file carries no signature."""

    version: str
    flavour: str
    path: str = ""
    signer: str = ""


class Target(NamedTuple):
    """The driver that is asked for: its branch, flavour, and exact version ("" for any of the branch)."""

    branch: str
    flavour: str
    version: str = ""

    @property
    def asked(self) -> str:
        """How a sentence names what was asked for: "version 580.95.05"; "branch 580"."""
        return f"version {self.version}" if self.version else f"branch {self.branch}"

    @property
    def words(self) -> str:
        """For a sentence: "580.95.05, open"; "580, open"."""
        return f"{self.version or self.branch}, {self.flavour}"

    def takes(self, version: str, flavour: str) -> bool:
        """Whether a driver is one that is asked for."""
        asked = version == self.version if self.version else branch_of(version) == self.branch
        return asked and flavour == self.flavour


def branch_of(version: str) -> str:
    """The branch of a full version: "580" of "580.95.05"."""
    return version.partition(".")[0]


def parse_nvrm(text: str) -> Loaded:
    """/proc/driver/nvidia/version; raises StepFailed for a text that names no driver."""
    found = NVRM.search(text)
    if not found:
        raise StepFailed(
            f"{VERSION_FILE} reads {text.strip()[:200]!r}, which names no driver: see what is loaded as nvidia"
        )
    return Loaded(found.group(2), OPEN if found.group(1) else PROPRIETARY)


def parse_modinfo(text: str) -> OnDisk | None:
    """What modinfo says of the module nvidia; None when it names no version.

    The licence tells the flavour: "Dual MIT/GPL" is the open one, "NVIDIA" the proprietary.
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    version = fields.get("version", "")
    if not version:
        return None
    licence = fields.get("license", "")
    if licence not in ("NVIDIA", "Dual MIT/GPL"):
        raise StepFailed(
            f"modinfo gives the module nvidia the licence {licence!r}, which tells no flavour "
            f"(see {fields.get('filename', 'the file')}): install the driver again"
        )
    return OnDisk(
        version,
        PROPRIETARY if licence == "NVIDIA" else OPEN,
        fields.get("filename", ""),
        fields.get("signer", ""),
    )


def version_in(name: str) -> str | None:
    """The version in a library's file name, "libnvidia-ml.so.580.95.05"; None for another name."""
    found = re.fullmatch(r"libnvidia-ml\.so\.(\d+(?:\.\d+)+)", name.rpartition("/")[2])
    return found.group(1) if found else None


def by_number(version: str) -> tuple[int, ...]:
    """A version as numbers, to be compared."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())
