# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This machine's Node as a reboot has to know it: whether pods may come, whether that is our doing, which there are."""

from __future__ import annotations

from ..core.host import Host
from ..core.unknown import later
from ..plan.kube_cordon import DRAINED, RECORD, Now, Ours, Settings, parse_record


def look(host: Host, settings: Settings | None) -> Now:
    """All of it; raises NotReady where the API server does not tell of the Node."""
    from .kube_join import joined

    member = joined(host)
    if member is None:
        return Now(record=record(host))
    from .kube_node import own_node, pods

    found = own_node(host, member)
    wants_pods = found is not None and settings is not None and settings.state == DRAINED
    return Now(member, found, record(host), later(pods, host, member) if wants_pods else ())


def record(host: Host) -> Ours | None:
    """Which Node we cordoned; raises StepFailed for a record that is damaged."""
    text = host.read(RECORD)
    return None if text is None else parse_record(text)
