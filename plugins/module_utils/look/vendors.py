# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's CDI specifications as holds take edits from them."""

from __future__ import annotations

from ..core.host import Host
from ..plan.devices_seen import Vendor
from ..plan.hold_edits import with_edits
from .cdi import gone, vendor_specs


def vendors(host: Host) -> tuple[Vendor, ...]:
    """NVIDIA's specifications in both folders and formats, the outranking one last, with what of each is gone.

    A runtime drops a file in which a device has no edit; what holds take of the other devices is sound all the same.
    """
    found = vendor_specs(host, with_edits)
    return tuple(Vendor(*each, gone=gone(host, each.spec) if each.spec is not None else ()) for each in found)
