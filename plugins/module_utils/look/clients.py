# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a GPU: live holds, compute processes, and what has its device nodes open. Root's own look; it trusts no one.

nvidia-smi lists CUDA contexts only, so the open files of every process are read too.
"""

from __future__ import annotations

import re

from ..core.errors import NotReady, StepFailed, Unreadable
from ..core.host import Host
from ..plan.gpu import Gpu
from ..plan.gpu_listed import Listed
from ..plan.gpu_users import App, Holder, is_attendant
from ..plan.holds import Hold, claim, has, resolved
from ..plan.pci import normal_pci
from .holds import holds, releasing
from .nvidia_proc import DRIVER, taken
from .smi_apps import compute_apps
from .smi_lists import listing, parse_list

GONE = " (deleted)"  # what the kernel adds to the name of a file that was removed since
# What is open on a GPU that is in use; of MPS a client may have unified memory alone.
WORK = re.compile(r"/dev/nvidia(\d+|-uvm|-caps/.+)")
CAPABILITY = re.compile(r"^DeviceFileMinor:\s*(\d+)\s*$", re.MULTILINE)


def device_holders(host: Host) -> dict[str, tuple[Holder, ...]]:
    """The processes that have NVIDIA's device nodes open, by node: /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm ...

    Raises Unreadable, or NotKnownYet in check mode, for an account that may not see other accounts' files.
    """
    found: dict[str, dict[int, Holder]] = {}
    for pid in host.names("/proc"):
        if not pid.isdecimal():
            continue
        opened = _open_files(host, pid)
        # A node is removed, and made again, when the driver is loaded anew.
        for node in {path.removesuffix(GONE) for path in opened if path.startswith("/dev/nvidia")}:
            found.setdefault(node, {})[int(pid)] = Holder(int(pid), _program(host, pid))
    return {node: tuple(holders[pid] for pid in sorted(holders)) for node, holders in sorted(found.items())}


def _open_files(host: Host, pid: str) -> set[str]:
    folder = f"/proc/{pid}/fd"
    try:
        return {host.link(f"{folder}/{name}") or "" for name in host.names(folder)}
    except Unreadable as fault:
        if host.uid() != 0:
            raise
        raise StepFailed(
            f"{fault.message}: who uses the GPUs is seen by root on the host itself, not in a container"
        ) from None


def _program(host: Host, pid: str) -> str:
    """The name of a process's program; the kernel's own name of it, 15 characters, where that cannot be seen."""
    path = host.link(f"/proc/{pid}/exe")
    if path:
        return path.removesuffix(GONE).rpartition("/")[2]
    return (host.read(f"/proc/{pid}/comm") or "").strip() or "a process that ended"


def gpu_nodes(host: Host, gpus: tuple[Gpu, ...]) -> dict[str, tuple[str, ...]]:
    """The device nodes of each GPU by UUID: its own, and those of its MIG instances.

    A node's number is no index: the driver says it, by PCI address. A GPU that it does not say it of has every node.
    """
    minors = {gpu.pci: gpu.minor for gpu in taken(host)}
    nodes = {}
    for gpu in gpus:
        minor = minors.get(normal_pci(gpu.pci) or gpu.pci)
        nodes[gpu.uuid] = () if minor is None else (f"/dev/nvidia{minor}", *_capabilities(host, minor))
    return nodes


def _capabilities(host: Host, minor: int) -> tuple[str, ...]:
    """The nodes of a GPU's MIG instances, /dev/nvidia-caps/nvidia-cap12."""
    top = f"{DRIVER}/capabilities/gpu{minor}/mig"
    found = []
    for gi in host.names(top):
        for path in (f"{top}/{gi}", *(f"{top}/{gi}/{ci}" for ci in host.names(f"{top}/{gi}") if ci.startswith("ci"))):
            named = CAPABILITY.search(host.read(f"{path}/access") or "")
            if named:
                found.append(f"/dev/nvidia-caps/nvidia-cap{named.group(1)}")
    return tuple(found)


def busy(host: Host, gpus: tuple[Gpu, ...]) -> dict[str, tuple[str, ...]]:
    """Why each GPU is busy, clauses by UUID; every GPU has its entry, and an empty one is free.

    Programs that only watch or serve GPUs do not count (see plan.gpu.ATTENDANTS); `device_holders` shows them too.
    """
    claims = claimed(host)
    apps = apps_of(host, gpus)
    holders = device_holders(host)
    nodes = gpu_nodes(host, gpus)
    found = {}
    for gpu in gpus:
        why = [claim(hold) for hold in claims if has(hold, gpu.uuid)]
        computing, fault = apps[gpu.uuid]
        why += [fault] if fault else []
        why += [f"process {app.pid} ({app.name}) computes on it" for app in computing]
        seen = {app.pid for app in computing}
        why += [clause for pid, clause in _opened(nodes[gpu.uuid], holders) if pid not in seen]
        found[gpu.uuid] = tuple(dict.fromkeys(why))
    return found


def users(host: Host) -> tuple[str, ...]:
    """Who uses any GPU of the host, clauses as `busy` has them, and clients of MPS that no GPU is known of; () is free.

    Where nvidia-smi does not say who computes, that is a clause too.
    """
    why = [claim(hold) for hold in claimed(host)]
    try:
        apps = compute_apps(host)
    except (NotReady, StepFailed) as fault:
        apps = ()
        why.append(f"nvidia-smi does not say who computes ({fault.message})")
    why += [f"process {app.pid} ({app.name}) computes on {app.gpu_uuid}" for app in apps]
    seen = {app.pid for app in apps}
    for node, holders in device_holders(host).items():
        if WORK.fullmatch(node):
            strangers = [holder for holder in holders if not (holder.pid in seen or is_attendant(holder.program))]
            why += [f"process {holder.pid} ({holder.program}) has {node} open" for holder in strangers]
            seen |= {holder.pid for holder in strangers}
    return tuple(dict.fromkeys(why))


def claimed(host: Host) -> tuple[Hold, ...]:
    """Live holds and pending releases; a MIG device's UUID is attributed to its GPU where nvidia-smi -L lists it."""
    found = (*holds(host), *releasing(host))
    if not any(device.startswith("MIG-") for hold in found for device in hold.devices):
        return found
    listed = _listed(host)
    return tuple(resolved(hold, listed) for hold in found)


def _listed(host: Host) -> tuple[Listed, ...]:
    """The GPUs and their MIG devices; none where nvidia-smi -L fails, so that a MIG device's UUID is any GPU's."""
    try:
        return parse_list(listing(host))
    except StepFailed:
        return ()


def apps_of(host: Host, gpus: tuple[Gpu, ...]) -> dict[str, tuple[tuple[App, ...], str]]:
    """Compute processes by GPU, and what keeps nvidia-smi from telling; one dead GPU hides no other's.

    A process of a MIG device that is named by its own UUID is attributed as a hold is, else it counts for every GPU.
    """
    try:
        apps = compute_apps(host)
    except StepFailed:
        return {gpu.uuid: _alone(host, gpu) for gpu in gpus}
    listed = _listed(host) if any(app.gpu_uuid.startswith("MIG-") for app in apps) else ()
    by_app = [(app, resolved(Hold("", (app.gpu_uuid,)), listed)) for app in apps]
    return {gpu.uuid: (tuple(app for app, where in by_app if has(where, gpu.uuid)), "") for gpu in gpus}


def _alone(host: Host, gpu: Gpu) -> tuple[tuple[App, ...], str]:
    try:
        return compute_apps(host, gpu.uuid), ""
    except StepFailed as fault:
        return (), fault.message


def _opened(nodes: tuple[str, ...], holders: dict[str, tuple[Holder, ...]]) -> list[tuple[int, str]]:
    """(process, clause) of what has the nodes open; a GPU whose nodes are not known may be any."""
    mine = nodes or tuple(node for node in holders if re.fullmatch(r"/dev/nvidia\d+", node))
    return [
        (holder.pid, f"process {holder.pid} ({holder.program}) has {node} open")
        for node in mine
        for holder in holders.get(node, ())
        if not is_attendant(holder.program)
    ]
