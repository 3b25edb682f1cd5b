# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine that has joined shows of its membership."""

from __future__ import annotations

from ..core.host import Host
from ..core.unknown import later
from ..plan.kube_kept import SOON, Kept
from ..plan.kube_labels import Gpus
from ..plan.kube_seen import DOMAIN, KUBELET_FLAGS, SERVICE, Joined, Membership, Node, Settings
from .services import service


def kept(host: Host, joined: Joined, want: Settings) -> Kept:
    """All of it; a kubelet whose certificate is over is not used to ask for its Node."""
    from .kube_join import days_left, membership

    left = days_left(host, joined, SOON)
    kubelet = service(host, SERVICE)
    record, flags = membership(host), host.read(KUBELET_FLAGS) or ""
    is_quiet = kubelet.load == "not-found" or kubelet.runs
    return Kept(
        joined,
        None if left < 0 else later(_node, host, joined, want, record, flags),
        record,
        kubelet,
        left,
        later(gpus, host),
        "" if is_quiet else _last_words(host),
        flags,
    )


def _node(host: Host, joined: Joined, want: Settings, record: Membership | None, flags: str) -> Node | None:
    """The Node with those of its labels and taints that this machine's settings and record are about."""
    from .kube_join import node

    labels = sorted({DOMAIN, *want.labels, *(record.labels if record else ())})
    taints = sorted({(one.key, one.effect) for one in (*want.taints, *(record.taints if record else ()))})
    return node(host, joined, labels, [[*one] for one in taints], flags)


def gpus(host: Host) -> Gpus | None:
    """The GPUs that the driver has taken; None while GPUs wait for it, or one does not say what it is."""
    from .nvidia_proc import DRIVER, taken

    if not host.exists(DRIVER):
        from .pci import gpus as on_bus

        return None if any(gpu.driver != "vfio-pci" for gpu in on_bus(host)) else Gpus()
    from .driver import loaded

    found, driver = taken(host), loaded(host)
    if driver is None or not all(gpu.uuid and gpu.model for gpu in found):
        return None
    return Gpus(len(found), tuple(gpu.model for gpu in found), driver.version)


def _last_words(host: Host) -> str:
    from .kubelet_log import last_words

    return last_words(host)
