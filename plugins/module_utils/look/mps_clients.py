# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who computes on GPUs that MPS shares: looked at only where the service may have to be changed."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.unknown import is_known
from ..plan.gpu_sharing_daemon import CONTROL
from ..plan.gpu_sharing_seen import Seen
from ..plan.gpu_users import App, is_attendant
from .clients import device_holders, gpu_nodes
from .smi_apps import compute_apps

UVM = "/dev/nvidia-uvm"  # what every CUDA process opens
COMM = CONTROL[:15]  # as much of a program's name as the kernel keeps


def apps(host: Host, seen: tuple[Seen, ...], runs: bool) -> tuple[App, ...]:
    """The processes that compute. `runs`: the service does, and its clients are looked for among all processes too."""
    listed = _listed(host, seen)
    return (*listed, *_clients(host, seen, {app.pid for app in listed})) if runs else listed


def _clients(host: Host, seen: tuple[Seen, ...], known: set[int]) -> list[App]:
    """Processes that have unified memory open, by GPU: of a GPU under MPS nvidia-smi may list the server alone.

    One that has no GPU's node open may be on any of them.
    """
    holders = device_holders(host)
    nodes = gpu_nodes(host, tuple(gpu for gpu, _card in seen))
    found = []
    for holder in holders.get(UVM, ()):
        if holder.pid in known or is_attendant(holder.program) or holder.program.startswith(COMM):
            continue
        mine = [uuid for uuid, paths in nodes.items() if any(holder in holders.get(path, ()) for path in paths)]
        found += [App(uuid, holder.pid, holder.program) for uuid in mine or nodes]
    return found


def _listed(host: Host, seen: tuple[Seen, ...]) -> tuple[App, ...]:
    """As nvidia-smi lists them; those of a dead GPU, which keeps it from telling of all at once, are none."""
    try:
        return compute_apps(host)
    except StepFailed:
        alive = [gpu for gpu, card in seen if is_known(card)]
        if len(alive) in (0, len(seen)):
            raise
        return tuple(app for gpu in alive for app in compute_apps(host, gpu.uuid))
