# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel and the driver show of a simulated machine's GPUs in /proc, /sys and /dev."""

from __future__ import annotations

from .cards import Card
from .model import Machine

DRIVER = "/proc/driver/nvidia"
LIBRARIES = ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so")
LIBRARY_FOLDER = "/usr/lib/x86_64-linux-gnu"
# Programs that hold the GPUs have process ids from here on.
CLIENTS_FROM = 900
DEVICES = (
    "Character devices:\n  1 mem\n  5 /dev/tty\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n"
    "{uvm}511 nvidia-caps\n\nBlock devices:\n259 blkext\n"
)
BUILT = "Tue Sep 23 10:11:16 UTC 2025"


def nvrm(version: str, flavour: str) -> str:
    """/proc/driver/nvidia/version."""
    if flavour == "open":
        builder = "(builder@builder)"
        first = f"NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  {builder}  {BUILT}"
    else:
        first = f"NVIDIA UNIX x86_64 Kernel Module  {version}  {BUILT}"
    return f"NVRM version: {first}\nGCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"


def address(card: Card) -> str:
    """The kernel's form of a PCI address: four digits of domain, lower case."""
    return card.pci[4:].lower()


def files(machine: Machine, folder: str = LIBRARY_FOLDER) -> dict[str, str]:
    """Files by path; device nodes are empty files, the library's files lie in `folder`."""
    found = {}
    for card in machine.cards:
        slot = f"/sys/bus/pci/devices/{address(card)}"
        found.update({f"{slot}/vendor": "0x10de\n", f"{slot}/class": "0x030200\n"})
        found[f"{slot}/device"] = f"{card.kind.pci_id}\n"
    for pid, program, _nodes in _processes(machine):
        found[f"/proc/{pid}/comm"] = f"{program[:15]}\n"
    if machine.library:
        for name in LIBRARIES:
            found[f"{folder}/{name}.{machine.library}"] = ""
    if machine.loaded:
        found[f"{DRIVER}/version"] = nvrm(machine.loaded, machine.flavour)
        found.update(_modules(machine))
        found["/dev/nvidiactl"] = ""
        found["/proc/devices"] = DEVICES.format(uvm="510 nvidia-uvm\n" if machine.uvm else "")
        found[f"{DRIVER}/params"] = "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"
        found.update({f"{pipe}/control": "" for pipe in machine.mps})
        if machine.modeset:
            found["/dev/nvidia-modeset"] = ""
        if machine.uvm:
            found.update({"/dev/nvidia-uvm": "", "/dev/nvidia-uvm-tools": ""})
        for card in machine.cards:
            if card.dead != "handle":
                found.update(_card(card))
    return found


def _modules(machine: Machine) -> dict[str, str]:
    """/sys/module of the driver's modules: who stands on whom, and how often each is used."""
    needs = [("nvidia_uvm", "nvidia", machine.uvm), ("nvidia_modeset", "nvidia", machine.modeset or machine.drm)]
    needs.append(("nvidia_drm", "nvidia_modeset", machine.drm))
    found = {"/sys/module/nvidia/version": f"{machine.loaded}\n"}
    counts = {"nvidia": len(machine.clients) + sum(len(card.processes) for card in machine.cards)}
    for name, needed, there in needs:
        if there:
            counts.setdefault(name, 0)
            counts[needed] += 1
            found[f"/sys/module/{needed}/holders/{name}"] = ""
    for name, count in counts.items():
        found[f"/sys/module/{name}/refcnt"] = f"{count}\n"
        found[f"/sys/module/{name}/initstate"] = "live\n"
    return found


def capability(card: Card, gi: int, ci: int | None = None) -> int:
    """The minor number of the node that stands for an instance."""
    return 3 + card.minor * 135 + gi * 9 + (0 if ci is None else ci + 1)


def _card(card: Card) -> dict[str, str]:
    found = {
        f"/dev/nvidia{card.minor}": "",
        f"{DRIVER}/gpus/{address(card)}/information": (
            f"Model: \t\t {card.kind.name}\nIRQ:   \t\t 147\nGPU UUID: \t {card.uuid}\n"
            f"Bus Location: \t {address(card)}\nDevice Minor: \t {card.minor}\nGPU Excluded:\t No\n"
        ),
    }
    top = f"{DRIVER}/capabilities/gpu{card.minor}/mig"
    for gi in card.instances if card.mig else ():
        for path, ci in ((f"{top}/gi{gi.id}", None), *((f"{top}/gi{gi.id}/ci{one.id}", one.id) for one in gi.cis)):
            minor = capability(card, gi.id, ci)
            found[f"{path}/access"] = f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
            found[f"/dev/nvidia-caps/nvidia-cap{minor}"] = ""
    return found


def _processes(machine: Machine) -> list[tuple[int, str, list[str]]]:
    """(process, program, the nodes that it has open)."""
    found = []
    everything = [f"/dev/nvidia{card.minor}" for card in machine.cards]
    for number, name in enumerate(machine.clients):
        found.append((CLIENTS_FROM + number, name, ["/dev/nvidiactl", *everything]))
    for card in machine.cards:
        for process in card.processes:
            nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm", f"/dev/nvidia{card.minor}"]
            if process.gi is not None:
                nodes.append(f"/dev/nvidia-caps/nvidia-cap{capability(card, process.gi)}")
                nodes.append(f"/dev/nvidia-caps/nvidia-cap{capability(card, process.gi, process.ci)}")
            found.append((process.pid, process.name, nodes))
    return found


def links(machine: Machine, folder: str = LIBRARY_FOLDER) -> dict[str, str]:
    """Symbolic links by path: open files of processes, the driver of each GPU, the library."""
    found = {}
    for pid, program, nodes in _processes(machine):
        found[f"/proc/{pid}/exe"] = f"/usr/bin/{program}"
        found.update({f"/proc/{pid}/fd/{3 + number}": node for number, node in enumerate(nodes)})
    for card in machine.cards:
        if machine.loaded:
            found[f"/sys/bus/pci/devices/{address(card)}/driver"] = "../../../bus/pci/drivers/nvidia"
    if machine.library:
        for name in LIBRARIES:
            found[f"{folder}/{name}.1"] = f"{name}.{machine.library}"
    return found
