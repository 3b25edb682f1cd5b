# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pending Kubernetes releases, as root's record has them (plan.kube_releases has its form)."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import Unreadable
from ..core.host import Host
from ..plan.devices_seen import Release
from ..plan.holds import LOST_RELEASES, RELEASING
from ..plan.kube_releases import parse


class Pending(NamedTuple):
    """The releases, or why the file cannot be read and what text it has; `lost`: the marker of lost ones is there."""

    releases: tuple[Release, ...] = ()
    fault: str = ""
    text: str | None = None
    lost: bool = False


def pending(host: Host) -> Pending:
    """Raises Unreadable, or NotKnownYet in check mode, for an account that may not see root's record."""
    lost = host.exists(LOST_RELEASES)
    try:
        text = host.read(RELEASING)
    except Unreadable as fault:
        if fault.denied and host.uid() != 0:
            raise
        return Pending(fault=fault.message, lost=lost)
    if text is None:
        return Pending(lost=lost)
    try:
        return Pending(parse(text), lost=lost)
    except ValueError as fault:
        return Pending(fault=f"{RELEASING} cannot be made out ({fault})", text=text, lost=lost)
