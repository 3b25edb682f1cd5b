# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver that is asked for, and the one on the disk."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..core.errors import StepFailed
from .nvidia_driver_version import OPEN, PROPRIETARY

# Debian's own packages name the module nvidia-current.
MODULE_NAMES = ("nvidia", "nvidia-current")
INSTALL_DEBT = "packages"  # an installation that a killed pass may have left half-way
FULL_VERSION = re.compile(r"[1-9][0-9]{0,3}(?:\.[0-9]+){1,3}")


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
