# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated machine: what it is built of (`/etc/sim/machine.json`) and the files of its tree.

Every function takes `root`, the directory that holds the machine: "/" inside the namespace, the tree outside of it.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

MACHINE = "/etc/sim/machine.json"
ROOT_ARGUMENTS = "root=UUID=5b0c6f2e-0f4b-4f0c-9d55-3a1f6f7f1e11 ro"
MODULE_USERS = "/var/lib/sim/module_users.json"


class Node(NamedTuple):
    """A NUMA node: its CPUs, its memory, and how many 1 GiB pages it can find at runtime and at boot."""

    cpus: tuple[int, ...]
    memory_mb: int
    runtime_1g: int
    boot_1g: int


class Machine(NamedTuple):
    """What does not change while the machine is up: its hardware and the distribution on it."""

    distribution: str  # debian, ubuntu, rocky, suse, ostree
    kernel: str  # the release that boots
    loader: str  # grub, grubby, systemd-boot, uki, ostree, none
    vendor: str  # intel, amd, hygon, arm, other
    nodes: tuple[Node, ...]
    numa: bool = True
    cpufreq: bool = True
    governors: tuple[str, ...] = ("performance", "powersave")
    efi: bool = False
    esp: str = "/efi"  # where the EFI system partition is mounted
    leftover_grub: bool = False  # GRUB is installed and configured, and something else boots the machine
    proxmox: bool = False  # proxmox-boot-tool keeps the entries on a partition that is mounted only by it
    iommu: str = "argument"  # on: without any argument; argument: with it; off: the firmware has it off
    pages_1g: bool = True
    thp: bool = True
    systemd: bool = True
    initramfs_modules: tuple[str, ...] = ("overlay", "nvme")
    boot_modules: tuple[str, ...] = ("nvme",)  # loaded at boot by what the hardware announces
    no_sysctl: tuple[str, ...] = ()  # keys that this kernel does not have
    readonly_sysctl: tuple[str, ...] = ()
    einval_sysctl: tuple[tuple[str, str], ...] = ()  # (key, value): the kernel refuses
    old_grubby: bool = False  # grubby changes the entries only, not what later kernels read
    gpus: tuple[str, ...] = ()  # products (tests/gpu/products.py), in the order of the bus
    nvswitch: int = 0  # NVSwitches, which need Fabric Manager
    packages: tuple[str, ...] = ()  # installed from the start (repositories.py)
    packaged: bool = False  # packages are played although the machine has no GPU
    runtimes: tuple[tuple[str, str], ...] = ()  # container runtimes with their versions
    misboot: str = ""  # "", never-back, same-boot-id, other-loader
    down_seconds: float = 0.0

    @property
    def cpus(self) -> tuple[int, ...]:
        """All CPUs."""
        return tuple(sorted(cpu for node in self.nodes for cpu in node.cpus))


def load(root: str) -> Machine:
    """The machine of a tree."""
    return from_json(json.loads(need(root, MACHINE)))


def save(root: str, machine: Machine) -> None:
    """Write what the machine is built of."""
    put(root, MACHINE, json.dumps(to_json(machine), indent=1) + "\n")


def to_json(machine: Machine) -> dict[str, Any]:
    """As plain values."""
    return {**machine._asdict(), "nodes": [node._asdict() for node in machine.nodes]}


def from_json(values: dict[str, Any]) -> Machine:
    """From plain values; an unknown name is an error."""
    known = {name: _frozen(value) for name, value in values.items() if name != "nodes"}
    nodes = tuple(Node(**{name: _frozen(value) for name, value in node.items()}) for node in values["nodes"])
    return Machine(nodes=nodes, **known)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def at(root: str, path: str) -> str:
    """Where a path of the machine is, seen from here."""
    return path if root == "/" else root.rstrip("/") + path


def read(root: str, path: str) -> str | None:
    """The text of a file, None when it is absent."""
    try:
        with open(at(root, path), encoding="utf-8", errors="surrogateescape") as source:
            return source.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def need(root: str, path: str) -> str:
    """The text of a file that must be there."""
    text = read(root, path)
    if text is None:
        raise FileNotFoundError(f"{path} is missing in {root}")
    return text


def put(root: str, path: str, text: str, mode: int = 0o644) -> None:
    """Write a file, with the directories down to it."""
    where = at(root, path)
    os.makedirs(os.path.dirname(where), exist_ok=True)
    if os.path.exists(where) and not os.access(where, os.W_OK):
        os.chmod(where, 0o644)
    with open(where, "w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(text)
    os.chmod(where, mode)


def append(root: str, path: str, text: str) -> None:
    """Add to a file in one write."""
    where = at(root, path)
    os.makedirs(os.path.dirname(where), exist_ok=True)
    with open(where, "a", encoding="utf-8") as out:
        out.write(text)


def drop(root: str, path: str) -> None:
    """Remove a file or link, if it is there."""
    try:
        os.unlink(at(root, path))
    except FileNotFoundError:
        pass


def names(root: str, path: str) -> list[str]:
    """What a directory holds, sorted; empty when it is absent."""
    try:
        return sorted(os.listdir(at(root, path)))
    except (FileNotFoundError, NotADirectoryError):
        return []


def there(root: str, path: str) -> bool:
    """Whether a file or directory is there."""
    return os.path.exists(at(root, path))


def state(root: str, path: str) -> dict[str, Any]:
    """A JSON mapping of the simulator's, empty when it is absent."""
    found: dict[str, Any] = json.loads(read(root, path) or "{}")
    return found


def keep(root: str, path: str, values: dict[str, Any]) -> None:
    """Write such a mapping."""
    put(root, path, json.dumps(values, sort_keys=True) + "\n")


def cpulist(text: str) -> tuple[int, ...]:
    """A kernel CPU list, "0-3,8", as numbers; raises ValueError for what is none."""
    found: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _unused, last = part.partition("-")
            if int(last or first) < int(first):
                raise ValueError(text)
            found.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))


def as_cpulist(cpus: tuple[int, ...]) -> str:
    """Numbers as the kernel prints them: "0-3,8"."""
    parts: list[str] = []
    ordered = sorted(set(cpus))
    while ordered:
        first = last = ordered.pop(0)
        while ordered and ordered[0] == last + 1:
            last = ordered.pop(0)
        parts.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(parts)


def kernels(root: str) -> list[str]:
    """Installed kernels, newest first."""
    found = [name[len("vmlinuz-") :] for name in names(root, "/boot") if name.startswith("vmlinuz-")]
    return sorted(
        found,
        key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)],
        reverse=True,
    )


def initrd_name(root: str, kernel: str) -> str:
    """The file name of a kernel's initial RAM disk."""
    debian = load(root).distribution in ("debian", "ubuntu")
    return (
        f"initrd.img-{kernel}"
        if debian
        else f"initramfs-{kernel}.img"
        if load(root).distribution != "suse"
        else f"initrd-{kernel}"
    )
