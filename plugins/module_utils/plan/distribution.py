# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributions as values: what os-release says, folded into the families whose package managers we know."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple


class Distribution(NamedTuple):
    """A distribution: `id` and `like` of os-release, `version` ("24.04", "9.4", "" on a rolling one), `codename`.

    `family` is "debian", "rhel" (with CentOS Stream, Alma, Rocky, Oracle, and Amazon 2023), "fedora", "suse", or ""
    for anything else; `arch` is the kernel's name of the architecture, "x86_64" or "aarch64". `image`: packages of
    this host come with its image ("rpm-ostree", "transactional-update"), or "".
    """

    id: str
    like: tuple[str, ...] = ()
    version: str = ""
    codename: str = ""
    family: str = ""
    arch: str = "x86_64"
    image: str = ""

    @property
    def major(self) -> int:
        """The first number of the version, 0 where there is none."""
        found = re.match(r"\d+", self.version)
        return int(found.group()) if found else 0

    @property
    def words(self) -> str:
        """For a sentence: "ubuntu 24.04"."""
        return f"{self.id} {self.version}".strip()

    @property
    def is_ubuntu(self) -> bool:
        """Ubuntu, or what is made of it."""
        return "ubuntu" in (self.id, *self.like)

    @property
    def is_known(self) -> bool:
        """Whether packages can be asked for and installed here."""
        return bool(self.family) and (self.id != "amzn" or self.version == "2023")

    @property
    def has_streams(self) -> bool:
        """Whether NVIDIA's repository for it has module streams: RHEL 8 and 9 and their kin, and Amazon 2023."""
        return self.family == "rhel" and (self.major in (8, 9) or self.id == "amzn")


def parse_os_release(text: str, arch: str = "x86_64", image: str = "") -> Distribution:
    """os-release: `NAME=value` a line, the value bare or in quotes."""
    given = dict(re.findall(r"""^\s*([A-Z_]+)=["']?([^"'\n]*)["']?\s*$""", text, re.MULTILINE))
    name = given.get("ID", "linux").strip().lower()
    like = tuple(given.get("ID_LIKE", "").lower().split())
    return Distribution(
        id=name,
        like=like,
        version=given.get("VERSION_ID", "").strip(),
        codename=(given.get("VERSION_CODENAME") or given.get("UBUNTU_CODENAME") or "").strip(),
        family=_family(name, like),
        arch=arch,
        image=image,
    )


def _family(name: str, like: tuple[str, ...]) -> str:
    """The family by ID, then by ID_LIKE."""
    if name == "amzn" or name in ("rhel", "centos", "rocky", "almalinux", "ol"):
        return "rhel"
    for word in (name, *like):
        if word in ("debian", "ubuntu"):
            return "debian"
        if word in ("rhel", "centos"):
            return "rhel"
        if word in ("suse", "sles", "sled", "opensuse") or word.startswith(("opensuse-", "sle-", "sle_")):
            return "suse"
    return "fedora" if "fedora" in (name, *like) else ""
