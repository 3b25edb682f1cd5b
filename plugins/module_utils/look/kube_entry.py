# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine that is no member of a cluster shows of joins, and of other distributions of Kubernetes."""

from __future__ import annotations

from ..core.errors import Unreadable
from ..core.host import Host
from ..core.plan import Past
from ..core.unknown import later
from ..plan.kube_entry import CLIENT, KUBELET_PKI, LEFTOVERS, OTHERS, Entry
from ..plan.kube_seen import CLEAN, KUBELET_CONF, RECORD, SERVICE
from .kube_kept import gpus
from .kubelet_log import last_words
from .services import service


def entry(host: Host, past: Past) -> Entry:
    """What a machine that is no member has of a join; of processes and the log only what a join of ours left to see."""
    kubelet = service(host, SERVICE)
    return Entry(
        leftovers=(*((KUBELET_CONF,) if host.exists(KUBELET_CONF) else ()), *leftovers(host)),
        kubelet=kubelet,
        record=host.file(RECORD) is not None,
        running=CLEAN in past.owed and _is_joining(host),
        said=last_words(host) if past.vain else "",
        gpus=later(gpus, host),
    )


def leftovers(host: Host) -> tuple[str, ...]:
    """The files of a join that came to nothing, but for kubelet.conf."""
    pki = (f"{KUBELET_PKI}/{name}" for name in host.names(KUBELET_PKI) if name.startswith(CLIENT))
    return (*(path for path in LEFTOVERS if host.file(path) is not None), *pki)


def _is_joining(host: Host) -> bool:
    """Whether a kubeadm join runs, which the pass that was killed has left."""
    for name in host.names("/proc"):
        if name.isdigit():
            try:
                words = (host.read(f"/proc/{name}/cmdline") or "").split("\0")
            except Unreadable:  # a process of another account
                continue
            if words[0].rpartition("/")[2] == "kubeadm" and words[1:2] == ["join"]:
                return True
    return False


def others(host: Host) -> tuple[str, ...]:
    """What is here of other distributions of Kubernetes."""
    return tuple(path for path in OTHERS if host.exists(path))
