# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine shows that is to leave its cluster: its membership, and what a reset must not take along."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.host import Host
from ..core.plan import Past
from ..core.unknown import is_known, later
from ..plan.fstab_swap import plain
from ..plan.holds import Hold
from ..plan.kube_clean import FOLDER, MOUNTS, Leaving, is_ours
from ..plan.kube_seen import CONTROL_PLANE, KUBELET_CONF, SERVICE
from ..plan.service_seen import Service
from .kube_node import own_node, pods
from .services import service

# File systems that hold nothing but what the kernel or a running pod put there.
BARE = frozenset(
    ("tmpfs", "ramfs", "overlay", "proc", "sysfs", "cgroup", "cgroup2", "devpts", "devtmpfs", "mqueue", "nsfs", "bpf")
)


def leaving(host: Host, past: Past) -> Leaving:
    """All of it, where a membership may be taken back; else only what there is of one."""
    from .kube_entry import entry, leftovers
    from .kube_join import member as is_member
    from .kube_join import membership

    member, record = is_member(host, past), membership(host)
    now = Leaving(
        member,
        record,
        service(host, SERVICE),
        record.node if record else member.node if member else default_name(host),
        (*((KUBELET_CONF,) if host.exists(KUBELET_CONF) else ()), *leftovers(host)),
        host.exists(CONTROL_PLANE),
    )
    if not is_ours(now, past):
        return now
    if member is None and record is None:
        return now._replace(is_joining=entry(host, past).running)
    node = later(own_node, host, member) if member else None
    return now._replace(
        node=node,
        pods=later(pods, host, member) if member and node is not None and is_known(node) else (),
        holds=_holds(host),
        users=users(host, now.kubelet),
        mounts=mounts(host),
        has_kubeadm=host.which("kubeadm") is not None,
    )


def default_name(host: Host) -> str:
    """The Node's name by the host name that this machine has now; it may have had another one when it joined."""
    from ..plan.node_name import node_name

    bare = (host.read("/proc/sys/kernel/hostname") or "").strip()
    try:
        return node_name(bare)
    except Refused:  # no Node can have it
        return bare


# -- what is in the way


def _holds(host: Host) -> tuple[Hold, ...]:
    from .holds import holds, releasing

    return (*holds(host), *releasing(host))


def users(host: Host, kubelet: Service) -> str:
    """Who has GPUs among the pods, a clause; "" for nobody, and on a machine without NVIDIA's driver.

    A kubelet that does not run has no list of devices: then its checkpoints and the open device nodes tell.
    """
    from .gpu_facts import has_driver

    if not has_driver(host):
        return ""
    from ..plan.pod_devices import Holders
    from .pods import account

    return Holders(account(host, listing=kubelet.runs)).strangers(())


def mounts(host: Host) -> tuple[str, ...]:
    """What is mounted below the kubelet's folder and may hold data, "<path> (<file system>)" each."""
    target = host.link(FOLDER)
    folders = [FOLDER, *([target] if target else [])]
    found = []
    for line in (host.read(MOUNTS) or "").splitlines():
        left, _dash, right = line.partition(" - ")
        place, kind = left.split(" "), right.split(" ")[0]
        path = plain(place[4]) if len(place) > 4 else ""
        if kind not in BARE and any(path.startswith(f"{folder}/") for folder in folders):
            found.append(f"{path} ({kind})")
    return tuple(found)
