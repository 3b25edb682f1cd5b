# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Kubernetes has of a host, as facts: its kubelet, and the cluster that the host is a member of."""

from __future__ import annotations

import re
import time
from typing import Any

from ..core.host import Host
from ..plan.kube_seen import KUBELET_CONF, KUBELET_CONFIG, Joined
from .gpu_facts import Notes
from .installed_units import has_unit
from .services import service

PROGRAM, SERVICE = "kubelet", "kubelet.service"


def kubelet(host: Host) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The kubelet's facts, and a sentence on each that is null because it cannot be read; empty where there is none.

    `certificate_expires` is UTC, "2027-11-30T00:01:21Z". Asks systemd twice and the kubelet once, where there is one.
    """
    program, member = host.which(PROGRAM) is not None, host.exists(KUBELET_CONF)
    if not (program or member or has_unit(host, SERVICE)):
        return {}, ()
    notes = Notes()
    seen = notes.told("kubelet.active", service, host, SERVICE)
    return {
        "installed": program,
        "version": notes.told("kubelet.version", _version, host) if program else None,
        "active": seen.runs if seen else None,
        "enabled": seen.enabled.startswith("enabled") if seen else None,
        "joined": member,
        **_membership(notes.told("kubelet.server", _joined, host) if member else None),
        "swap_allowed": notes.told("kubelet.swap_allowed", _swap_allowed, host),
    }, tuple(notes.faults)


def _version(host: Host) -> str | None:
    """1.31.4 of "Kubernetes v1.31.4"."""
    found = re.search(r"\bv(\d+\.\d+\.\d+\S*)", host.ask((PROGRAM, "--version")).out)
    return found.group(1) if found else None


def _joined(host: Host) -> Joined | None:
    from .kube_join import joined

    return joined(host)


def _membership(joined: Joined | None) -> dict[str, Any]:
    if joined is None:
        return {"server": None, "node": None, "ca_pins": None, "certificate_expires": None}
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(joined.expires)) if joined.expires else None
    return {
        "server": joined.server,
        "node": joined.node or None,
        "ca_pins": list(joined.pins),
        "certificate_expires": expires,
    }


def _swap_allowed(host: Host) -> bool | None:
    """Whether the cluster lets its kubelets run beside swap; None where no kubelet was configured."""
    from .swap import allowed

    return None if host.read(KUBELET_CONFIG) is None else allowed(host)
