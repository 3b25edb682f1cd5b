# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pods of this host have of its GPUs, from four sources, each of which misses something.

The kubelet's list has no plain init containers and is empty after a restart; its checkpoints have those, with what is
long over; an open device node tells of both, and of nothing that has not started. What cannot be read counts as held.
"""

from __future__ import annotations

import re
from typing import Callable, TypeVar

from ..core.errors import StepFailed, Unreadable
from ..core.host import Host
from ..core.unknown import is_known
from ..plan.devices_seen import Card
from ..plan.gpu_users import is_attendant
from ..plan.pod_devices import ANY, Account, Holders, Process, key
from ..plan.pod_resources import METHOD, Use, checkpoint, claims, listed
from .clients import device_holders
from .nvidia_proc import taken

KUBELET = "/var/lib/kubelet"
SOCKET = f"{KUBELET}/pod-resources/kubelet.sock"
CHECKPOINT = f"{KUBELET}/device-plugins/kubelet_internal_checkpoint"
CLAIMS = f"{KUBELET}/dra_manager_state"
PODS = f"{KUBELET}/pods"
TIMEOUT = 5.0  # seconds for the kubelet's answer: it is asked again on each look
UNIT_FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
# A kubelet that kubeadm set up has its credentials here, or waits for them.
KUBEADM = "kubelet.service.d/10-kubeadm.conf"
JOINED = ("/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf")
CGROUPS = "/sys/fs/cgroup"
# The folder of a pod: "pod<uid>", or "kubepods-burstable-pod<uid with _>.slice" where systemd makes it.
POD = re.compile(r"/(?:[^/]*-)?pod([0-9a-f][0-9a-f_-]*)(?:\.slice)?(?:/|$)", re.MULTILINE)
NODE = re.compile(r"/dev/nvidia(\d+)")
UNIFIED = "/dev/nvidia-uvm"
T = TypeVar("T")


def pods(host: Host, devices: tuple[str, ...], cards: tuple[Card, ...] = ()) -> dict[str, str]:
    """Who has each of the devices, a clause by its id; "" where no pod has it.

    Nothing is read where there is no device to ask of. Raises Unreadable, or NotKnownYet in check mode, for an account
    that may not see this.
    """
    if not devices:
        return {}
    holders = _holders(host, cards)
    return {device: holders.who(device) for device in devices}


def strangers(host: Host, known: tuple[str, ...], cards: tuple[Card, ...] = ()) -> str:
    """What a pod has of a GPU that is no device of `known`, those of the allocations that we know; "" for nothing."""
    return _holders(host, cards).strangers(known)


def _holders(host: Host, cards: tuple[Card, ...]) -> Holders:
    return Holders(account(host), cards if is_known(cards) else ())


def account(host: Host, listing: bool = True) -> Account:
    """All four sources; without `listing` all but the kubelet's list, which one that does not run has not.

    A host on which no kubelet can have a pod has none of them.
    """
    if not _may_have_pods(host):
        return Account()
    faults: list[str] = []

    def ask(source: Callable[[Host], tuple[T, ...]]) -> tuple[T, ...]:
        try:
            return source(host)
        except StepFailed as fault:
            if isinstance(fault, Unreadable) and fault.denied and host.uid() != 0:  # root sees it
                raise
            faults.append(fault.message)
            return ()

    noted = ask(_noted)
    live = frozenset(ask(lambda host: host.names(PODS)))  # after the checkpoints: a pod is noted before it has a folder
    minors = {gpu.minor: gpu.uuid for gpu in ask(taken) if gpu.minor is not None and gpu.uuid}
    processes = ask(lambda host: _processes(host, minors))
    uses = (*(ask(_listed) if listing else ()), *(use for use in noted if use.uid in live))
    return Account(uses, processes, tuple(dict.fromkeys(faults)), minors)


def _may_have_pods(host: Host) -> bool:
    """Whether a kubelet is or was here: its folder, program or unit, or a cgroup of pods with processes.

    One that kubeadm set up, and then reset, has neither credentials nor pods.
    """
    if _has_pod_cgroup(host):
        return True
    units = any(host.exists(f"{folder}/kubelet.service") for folder in UNIT_FOLDERS)
    if not (units or host.exists(KUBELET) or host.which("kubelet")):
        return False
    reset = any(host.exists(f"{folder}/{KUBEADM}") for folder in UNIT_FOLDERS) and not any(map(host.exists, JOINED))
    return not reset or bool(host.names(PODS)) or host.exists(SOCKET)


def _has_pod_cgroup(host: Host) -> bool:
    """Whether a kubepods cgroup, of either version and wherever the kubelet's own lies, has or may have processes."""
    tops = [f"{CGROUPS}/{name}" for name in host.names(CGROUPS)]
    below = [f"{top}/{name}" for top in tops for name in host.names(top)]
    found = [path for path in (*tops, *below) if "kubepods" in path.rpartition("/")[2]]
    return any("populated 0" not in (host.read(f"{path}/cgroup.events") or "") for path in found)


# -- the sources


def _listed(host: Host) -> tuple[Use, ...]:
    """What the kubelet lists, of pods that run."""
    answer = host.unary(SOCKET, METHOD, timeout=TIMEOUT)
    try:
        return listed(answer)
    except ValueError as fault:
        raise StepFailed(f"{SOCKET} answers {METHOD} with {fault}: see the kubelet's log") from None


def _noted(host: Host) -> tuple[Use, ...]:
    """What the kubelet's checkpoints say, also of pods that are gone."""
    found: list[Use] = []
    for path, parse in ((CHECKPOINT, checkpoint), (CLAIMS, claims)):
        text = host.read(path)
        if text is None:  # no plugin was ever registered, no claim ever prepared
            continue
        try:
            found += parse(text)
        except (ValueError, RecursionError) as fault:
            raise StepFailed(f"{path} cannot be made out: {fault}: see the kubelet's log") from None
    return tuple(found)


def _processes(host: Host, minors: dict[int, str]) -> tuple[Process, ...]:
    """The processes in the cgroups of pods that have a GPU's node open, or unified memory."""
    opened: dict[int, set[str]] = {}
    programs: dict[int, str] = {}
    for node, holders in device_holders(host).items():
        if node == UNIFIED or NODE.fullmatch(node):
            for holder in holders:
                opened.setdefault(holder.pid, set()).add(node)
                programs[holder.pid] = holder.program
    found = []
    for pid, nodes in sorted(opened.items()):
        group = "" if is_attendant(programs[pid]) else host.read(f"/proc/{pid}/cgroup") or ""
        if "kubepods" in group:
            pod = POD.search(group)
            uid = pod.group(1).replace("_", "-") if pod else ""
            numbers = [int(node.group(1)) for node in map(NODE.fullmatch, nodes) if node]
            gpus = frozenset(key(minors[number]) if number in minors else ANY for number in numbers)
            found.append(Process(pid, programs[pid], uid, gpus))
    return tuple(found)
