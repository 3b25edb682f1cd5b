# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit k8s-join."""

from __future__ import annotations

from typing import Any

from ..core.errors import Refused, StepFailed
from ..core.host import Host
from ..core.plan import Past, Unit
from ..core.unknown import later
from ..look.config import config
from ..look.kube_join import member, token_files
from ..look.swap import allowed as runs_beside_swap
from ..plan import k8s_join as planner
from ..plan.kube_seen import CONTROL_PLANE, KUBELET_CONFIG
from ..plan.unit_names import K8S_JOIN as NAME

HOST_NAME = "/proc/sys/kernel/hostname"


def look(host: Host, settings: planner.Settings | None, past: Past) -> planner.Now | planner.Going:
    """Whose the machine is, and what a worker stands on; of joins only what a machine that is no member shows."""
    if settings is None:
        from ..look.kube_clean import leaving

        parts = _parts(host, None, past, True)
        return planner.Going(leaving(host, past), parts, token_files(host, False, past))
    joined = member(host, past)
    stays = joined is not None and runs_beside_swap(host)
    parts = _parts(host, settings, past, stays)
    now = planner.Now(
        allowed=config(host).get("kubernetes", {}).get("allowed_clusters", ""),
        host_name=host.read(HOST_NAME) or "",
        control_plane=host.exists(CONTROL_PLANE),
        parts=parts,
        token_files=token_files(host, joined is not None, past),
        joined=joined,
    )
    if joined is None:
        from ..look.kube_entry import entry, others

        return now._replace(entry=entry(host, past), others=others(host))
    from ..look.kube_kept import kept

    return now._replace(
        swap_allowed=stays,
        cgroupfs=_takes_cgroupfs(host),
        kept=kept(host, joined, settings),
    )


def _takes_cgroupfs(host: Host) -> bool:
    config = host.read(KUBELET_CONFIG) or ""
    if "cgroupfs" not in config:
        return False
    from ..plan.kubelet_cgroups import takes_cgroupfs

    return takes_cgroupfs(config)


def _parts(host: Host, settings: planner.Settings | None, past: Past, swap_is_wanted: bool) -> planner.Parts:
    from ..look.containerd import containerd_files
    from ..look.kube_kernel import kernel
    from ..look.kube_packages import software
    from ..look.swap import swap

    return planner.Parts(
        software=later(software, host, settings, past),
        kernel=later(kernel, host),
        swap=later(swap, host, swap_is_wanted),
        containerd=later(containerd_files if settings else _readable, host),
    )


def _readable(host: Host) -> Any:
    """containerd's configuration, for a removal: one that cannot be read keeps nothing else from being handed back."""
    from ..look.containerd import containerd_files

    try:
        return containerd_files(host)
    except Refused as fault:
        raise StepFailed(fault.message, retryable=False) from None


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
