# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host that takes holds: GPUs, NVIDIA's CDI specification of them, systemd with slices; and a kubelet."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.devices import UNIT
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Machine
from tests.kubelet import pods as written
from tests.kubelet.pods import Pod
from tests.unit import promises
from tests.unit.fake_host import FakeHost
from tests.unit.slice_host import add_slices

H100 = "H100-80GB"
HOLD, KUBERNETES = "BINDING_HOLD", "BINDING_KUBERNETES"
VENDOR = "/etc/cdi/nvidia.json"
KUBELET = "/var/lib/kubelet"
SOCKET = f"{KUBELET}/pod-resources/kubelet.sock"
MEMORY = "MemTotal:       {} kB\nHugetlb:               0 kB\n"


def hold_host(*products: str, memory_mib: int = 65536) -> GpuHost:
    """A host with these GPUs, two H100 unless they are given, whose specification NVIDIA's toolkit wrote."""
    host = gpu_host(Machine.from_products(products or (H100, H100)))
    add_slices(host)
    host.put("/proc/meminfo", MEMORY.format(memory_mib * 1024))
    describe(host)
    return host


def describe(host: GpuHost) -> None:
    """NVIDIA's specification of what is there now: a node a GPU and a MIG device, and the node that all need."""
    named = {card.uuid: f"/dev/nvidia{at}" for at, card in enumerate(host.machine.cards)}
    for card in host.machine.cards:
        for at, (gi, ci) in enumerate(card.devices()):
            named[card.device_uuid(gi, ci, host.machine.branch)] = f"/dev/nvidia-caps/nvidia-cap{at + 1}"
    devices = [{"name": name, "containerEdits": {"deviceNodes": [{"path": path}]}} for name, path in named.items()]
    common = {"deviceNodes": [{"path": "/dev/nvidiactl"}]}
    spec = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices, "containerEdits": common}
    host.put(VENDOR, json.dumps(spec))
    for path in ("/dev/nvidiactl", *named.values()):
        host.put(path, "")


def uuids(host: GpuHost) -> list[str]:
    return [card.uuid for card in host.machine.cards]


def part(host: GpuHost, gpu: int, *profiles: str) -> list[str]:
    """Put a GPU into MIG mode with these instances; the ids of all its MIG devices."""
    card = host.machine.cards[gpu]
    card.mig = card.mig_pending = True
    rc, said = host.machine.smi(("nvidia-smi", "mig", "-i", str(gpu), "-cgi", ",".join(profiles), "-C"))
    assert rc == 0, said
    host.sync()
    describe(host)
    return [f"{card.uuid}/gi{gi.id}/ci{ci.id}" for gi, ci in card.devices()]


def assign(allocation: str, *devices: str, binding: str = HOLD, **more: Any) -> dict[str, Any]:
    """An assignment of these devices, whose classes are told by their ids."""
    classes = ["gpu.slot" if "/s" in one else "gpu.mig" if "/gi" in one else "gpu" for one in devices]
    named = [{"id": one, "device_class": kind} for one, kind in zip(devices, classes)]
    return {"allocation_id": allocation, "binding": binding, "devices": named, **more}


def section(*assignments: dict[str, Any], generation: int = 1, **more: Any) -> dict[str, Any]:
    return {"assignments": list(assignments), "generation": generation, "node_id": "node-1", **more}


def go(host: GpuHost, *assignments: dict[str, Any], check: bool = False, **more: Any) -> Outcome:
    """One pass over a section of these assignments; `more` are its other settings."""
    return promises.go(UNIT, host, section(*assignments, **more), check=check)


def reasons(outcome: Outcome) -> dict[str, tuple[str, str]]:
    """Reason and message of what could not be honoured, by allocation."""
    return {one["allocation_id"]: (one["reason"], one["message"]) for one in outcome.found["failures"]}


def events(host: GpuHost) -> list[str]:
    """The journal's ids, without the time of the hold."""
    found = []
    for name in host.names("/var/lib/bcd-hostconfig/events"):
        record = json.loads(host.text(f"/var/lib/bcd-hostconfig/events/{name}") or "")
        found.append((record["sequence"], record["id"].removesuffix(f"-{host.unix}")))
    return [name for _sequence, name in sorted(found)]


def record(host: GpuHost, allocation: str) -> dict[str, Any]:
    """Root's record of a hold."""
    found: dict[str, Any] = json.loads(host.text(f"/var/lib/bcd-hostconfig/holds/{allocation}.json") or "")
    return found


def spec(host: GpuHost, allocation: str) -> dict[str, Any]:
    """The CDI specification of a hold."""
    found: dict[str, Any] = json.loads(host.text(f"/etc/cdi/bcd-{allocation}.json") or "")
    return found


def env(host: GpuHost, allocation: str) -> str | None:
    """The env file of a hold."""
    return host.text(f"/run/bcd/allocations/{allocation}.env")


def files(host: FakeHost) -> dict[str, str]:
    """All that there is of holds, by path."""
    kept = ("/etc/cdi/bcd-", "/run/bcd/", "/var/lib/bcd-hostconfig/")
    return {path: file.text for path, file in host.files.items() if path.startswith(kept)}


def add_kubelet(host: GpuHost, *pods: Pod) -> None:
    """A kubelet that runs these pods, and lists them."""
    host.put(f"{KUBELET}/config.yaml", "")
    host.put(f"{KUBELET}/device-plugins/kubelet_internal_checkpoint", written.checkpoint(pods))
    for pod in pods:
        host.put(f"{KUBELET}/pods/{pod.uid}/etc-hosts", "")
    host.put(SOCKET, "")
    host.servers[SOCKET] = lambda _method, _message: written.listed(pods)
