# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's record of a join of ours, as it is written (kube_membership reads it)."""

from __future__ import annotations

from ..core import state
from ..core.step import Step, write
from .kube_seen import RECORD, Membership


def record(membership: Membership, *, pays: tuple[str, ...] = ()) -> Step:
    """Write the record."""
    action = f"record the membership of the node {membership.node} in the cluster {membership.api_server}"
    return write(RECORD, render(membership), action, mode=0o600, pays=pays)


def render(membership: Membership) -> str:
    """The text of the record."""
    return state.render(
        {
            "api_server": membership.api_server,
            "ca_cert_sha256": membership.pin,
            "node": membership.node,
            "labels": dict(sorted(membership.labels.items())),
            "taints": [dict(taint._asdict()) for taint in sorted(membership.taints)],
            "uid": membership.uid,
        }
    )
