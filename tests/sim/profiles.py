# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of simulated machines, and which programs each has."""

from __future__ import annotations

from typing import Any

from . import containers, packages
from .machine import Machine, Node

RELEASES = {
    "debian": "6.1.0-18-amd64",
    "ubuntu": "6.8.0-31-generic",
    "rocky": "5.14.0-427.13.1.el9_4.x86_64",
    "suse": "6.4.0-150600.21-default",
    "ostree": "6.8.5-301.fc40.x86_64",
}
EVERYWHERE = (
    "modprobe",
    "rmmod",
    "lsmod",
    "modinfo",
    "depmod",
    "sysctl",
    "systemd-detect-virt",
    "mount",
    "umount",
    "findmnt",
    "swapon",
    "swapoff",
    "hostname",
    "uname",
    "reboot",
    "shutdown",
    "sudo",
)
BY_LOADER = {
    "grub": (),
    "grubby": ("grubby", "grub2-mkconfig", "grub2-editenv", "kernel-install"),
    "systemd-boot": ("bootctl", "kernel-install"),
    "uki": ("bootctl", "kernel-install"),
    "ostree": ("rpm-ostree", "grub2-mkconfig", "grub2-editenv"),
    "none": (),
}
BY_DISTRIBUTION = {
    "debian": ("update-initramfs", "lsinitramfs"),
    "ubuntu": ("update-initramfs", "lsinitramfs"),
    "rocky": ("dracut", "lsinitrd"),
    "suse": ("dracut", "lsinitrd"),
    "ostree": ("lsinitrd",),
}


def machine(
    distribution: str = "debian",
    cpus: int = 8,
    nodes: int = 2,
    memory_mb: int = 16384,
    runtime_1g: int = 2,
    boot_1g: int = 4,
    **more: Any,
) -> Machine:
    """A machine with as many CPUs and as much memory on each node; `more` are fields of Machine."""
    each = cpus // nodes
    parts = tuple(
        Node(tuple(range(n * each, (n + 1) * each)), memory_mb // nodes, runtime_1g, boot_1g) for n in range(nodes)
    )
    defaults = {
        "kernel": RELEASES[distribution],
        "vendor": "intel",
        "loader": {"rocky": "grubby", "ostree": "ostree"}.get(distribution, "grub"),
    }
    return Machine(distribution=distribution, nodes=parts, **{**defaults, **more})


PROFILES: dict[str, Machine] = {
    "debian": machine(),
    "ubuntu-efi": machine("ubuntu", efi=True),
    "rocky": machine("rocky", efi=True),
    "suse": machine("suse"),
    "ostree": machine("ostree", efi=True),
    "systemd-boot": machine("debian", loader="systemd-boot", efi=True),
    "systemd-boot-grub": machine("debian", loader="systemd-boot", efi=True, leftover_grub=True),
    "proxmox": machine("debian", loader="systemd-boot", efi=True, esp="/var/lib/sim/esp", proxmox=True),
    "uki": machine("debian", loader="uki", efi=True),
    "no-loader": machine("debian", loader="none", cpufreq=False),
    "vm": machine("debian", cpus=2, nodes=1, memory_mb=4096, cpufreq=False, boot_modules=()),
    "amd": machine("debian", vendor="amd", iommu="on"),
    "arm": machine("debian", vendor="arm", iommu="argument"),
}


def present(what: Machine) -> tuple[str, ...]:
    """The programs of such a machine."""
    found = [*EVERYWHERE, *BY_LOADER[what.loader], *BY_DISTRIBUTION[what.distribution]]
    if what.loader == "grub" or what.leftover_grub:
        found += (
            ["grub2-mkconfig", "grub2-editenv"]
            if what.distribution in ("suse", "rocky")
            else ["update-grub", "grub-mkconfig", "grub-editenv"]
        )
    if what.gpus or what.packaged:
        found += packages.PROGRAMS_OF[what.distribution]
        found += [containers.PROGRAMS[name] for name, _version in what.runtimes]
    if what.gpus:
        found.append("nvidia-modprobe")
    if what.proxmox:
        found.append("proxmox-boot-tool")
    if what.systemd:
        found += ["systemctl", "journalctl"]
    if what.efi and what.systemd and "bootctl" not in found:
        found.append("bootctl")
    return tuple(found)
