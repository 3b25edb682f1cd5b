# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker lacks, and where it may come from: which distributions and minors have a repository of Kubernetes."""

from __future__ import annotations

from typing import NamedTuple

from .debts import debt
from .distribution import Distribution

# Programs without which kubeadm joins nothing, and which not every release of kubelet's package depends on: that of
# 1.31.14 lost conntrack, which kubeadm asks for before 1.32, and newer ones only recommend iptables.
TOOLS = ("conntrack", "iptables")
WITHOUT_CONNTRACK = 32  # from this minor on
OLDEST = 24  # the first minor that has a repository


class Elsewhere(NamedTuple):
    """Another file of the host that names the repository, and its id there ("" where ids are not known of)."""

    path: str
    name: str = ""


def package_of(tool: str, seen: Distribution) -> str:
    """The package that brings a program of TOOLS; the program's own name where no package is known."""
    if tool == "conntrack":
        return "conntrack-tools" if seen.family in ("rhel", "fedora") else tool
    return "iptables-nft" if seen.family == "fedora" or (seen.family == "rhel" and seen.major > 8) else tool


def is_served(seen: Distribution) -> bool:
    """Whether there is a repository for a distribution, and its package manager is known."""
    return seen.is_known and seen.family in ("debian", "rhel", "fedora")


def hold_debts(names: tuple[str, ...]) -> tuple[str, ...]:
    """The debts of the holds of these packages."""
    return tuple(debt("hold", name) for name in names)
