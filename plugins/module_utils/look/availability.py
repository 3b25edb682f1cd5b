# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether others can count on a host now: whether it is going down, and what its Node shows."""

from __future__ import annotations

from typing import Any

from ..core.host import Host
from ..plan.systemd_asks import RUNNING, SYSTEM_STATE

SCHEDULED = "/run/systemd/shutdown/scheduled"  # by shutdown(8), as NAME=value lines
NOLOGIN = "/run/nologin"  # is there while a machine starts, too


def going_down(host: Host) -> str:
    """Why the host is about to go down, a clause; "" where it is not."""
    words = dict(line.partition("=")[::2] for line in (host.read(SCHEDULED) or "").splitlines())
    mode = words.get("MODE", "")
    if words and not mode.startswith("dry-"):  # shutdown -k only warns
        return f"a {mode or 'shutdown'} is scheduled ({SCHEDULED})"
    text = " ".join((host.read(NOLOGIN) or "").split())
    if "going down" in text:
        return f"{NOLOGIN} says: {text}"
    if host.exists(RUNNING) and host.ask(SYSTEM_STATE).out.strip() == "stopping":
        return "systemd is stopping it"
    return ""


def node(host: Host) -> dict[str, Any]:
    """Its Node, {} where it is in no cluster or the cluster has none of its name.

    Raises NotReady where the API server does not tell.
    """
    from ..plan.kube_cordon import shown
    from .kube_cordon import record
    from .kube_join import joined
    from .kube_node import own_node

    member = joined(host)
    found = own_node(host, member) if member else None
    return {} if found is None else shown(found, record(host))
