# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of stand-ins, and what all of them share: the journal and the faults that a test asked for.

A concern (GPUs, packages, Kubernetes) adds its own table to TABLES and its names to programs.txt. A module is imported
for the program that it plays: to load all of them takes longer than most calls do.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from .machine import append, drop, names, read

Answer = tuple[int, str, str]
StandIn = Callable[[str, list[str]], Answer]
JOURNAL = "/var/log/sim/calls.jsonl"
FAULTS = "/etc/sim/faults.json"
HANG = "/run/sim/hang"

# Which function plays a program: those of the kernel, of the boot, of the system, and of each concern.
KERNEL = {
    "modprobe": "kmod.modprobe",
    "rmmod": "kmod.rmmod",
    "lsmod": "kmod.lsmod",
    "modinfo": "kmod.modinfo",
    "depmod": "programs.quiet",
    "sysctl": "programs.sysctl",
}
BOOT = {
    "update-grub": "grub.update_grub",
    "grub-mkconfig": "grub.grub_mkconfig",
    "grub2-mkconfig": "grub.grub_mkconfig",
    "grub-editenv": "grub.grub_editenv",
    "grub2-editenv": "grub.grub_editenv",
    "grubby": "bls.grubby",
    "bootctl": "sdboot.bootctl",
    "kernel-install": "sdboot.kernel_install",
    "mkinitcpio": "sdboot.mkinitcpio",
    "proxmox-boot-tool": "sdboot.proxmox_boot_tool",
    "rpm-ostree": "ostree.rpm_ostree",
    "dracut": "initramfs.dracut",
    "update-initramfs": "initramfs.update_initramfs",
    "lsinitramfs": "initramfs.lsinitramfs",
    "lsinitrd": "initramfs.lsinitramfs",
    "reboot": "programs.reboot",
    "shutdown": "programs.shutdown",
}
SYSTEM = {
    "systemctl": "systemctl.systemctl",
    "systemd-detect-virt": "programs.detect_virt",
    "mount": "mounts.mount_program",
    "umount": "mounts.umount",
    "findmnt": "mounts.findmnt",
    "swapoff": "swaps.swapoff",
    "swapon": "swaps.swapon",
    "hostname": "programs.hostname",
    "uname": "programs.uname",
}
GPUS = {
    "nvidia-smi": "gpu.nvidia_smi",
    "nvidia-ctk": "gpu.nvidia_ctk",
    "nvidia-cuda-mps-control": "gpu.mps_control",
    "nvidia-cdi-hook": "gpu.daemon",
    "nvidia-modprobe": "gpu.nvidia_modprobe",
    "nvidia-persistenced": "gpu.daemon",
    "nv-fabricmanager": "gpu.daemon",
    "nv-hostengine": "gpu.daemon",
}
PACKAGES = {
    "dpkg-query": "packages.dpkg_query",
    "dpkg": "packages.dpkg",
    "apt-get": "packages.apt_get",
    "apt-cache": "packages.apt_cache",
    "apt-mark": "packages.apt_mark",
    "rpm": "packages.rpm",
    "dnf": "packages.dnf",
}
CONTAINERS = {"containerd": "containers.containerd", "dockerd": "containers.dockerd", "podman": "containers.podman"}
KUBERNETES = {
    "kubeadm": "kubernetes.kubeadm",
    "kubelet": "kubernetes.kubelet",
    "kubectl": "kubernetes.kubectl",
    "journalctl": "kubernetes.journalctl",
}
TABLES = (KERNEL, BOOT, SYSTEM, GPUS, PACKAGES, CONTAINERS, KUBERNETES)


def stand_in(name: str) -> StandIn | None:
    """What plays a program; only its module is loaded."""
    where = next((table[name] for table in TABLES if name in table), None)
    if where is None:
        return None
    module, _unused, function = where.partition(".")
    found: StandIn = getattr(importlib.import_module(f".{module}", __package__), function)
    return found


def main(argv: list[str], root: str = "/") -> int:
    """Play the program that argv[0] names."""
    name = os.path.basename(argv[0])
    if name == "sudo":
        from . import programs

        return programs.sudo(root, argv[1:])
    rc, out, err = play(root, name, argv[1:])
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.stdout.flush()
    return rc


def play(root: str, name: str, argv: list[str]) -> Answer:
    """Run a stand-in and write the call into the journal."""
    began = time.time()
    answer = _fault(root, name, argv)
    if answer is None:
        player = stand_in(name)
        answer = player(root, argv) if player else (127, "", f"{name}: the simulator has no such program\n")
    line = {"argv": [name, *argv], "rc": answer[0], "time": round(began, 3)}
    append(root, JOURNAL, json.dumps(line) + "\n")
    return answer


def _fault(root: str, name: str, argv: list[str]) -> Answer | None:
    """What a test asked of this program: {"program": NAME, "arguments": "substring", "do": "fail" | "lie" | "hang"}."""
    if read(root, HANG) is not None:
        drop(root, HANG)
        time.sleep(3600)
    for fault in faults(root):
        if fault.get("program") == name and str(fault.get("arguments", "")) in " ".join(argv):
            if fault["do"] == "hang":
                time.sleep(3600)
            if fault["do"] == "fail":
                return int(fault.get("rc", 1)), "", str(fault.get("err", f"{name}: failed\n"))
            if fault["do"] == "lie":
                return 0, str(fault.get("out", "")), ""
    return None


def faults(root: str) -> list[dict[str, Any]]:
    """The faults that a test asked for, a list or a single one."""
    text = read(root, FAULTS)
    found = json.loads(text) if text else []
    return [found] if isinstance(found, dict) else list(found)


def calls(root: str) -> list[dict[str, Any]]:
    """The journal of a tree: argv, rc and time of each call, in order."""
    return [json.loads(line) for line in (read(root, JOURNAL) or "").splitlines()]


def install(root: str, programs_present: tuple[str, ...]) -> None:
    """Give a tree its programs: links in /usr/local/sbin to the one dispatcher."""
    folder = root.rstrip("/") + "/usr/local/sbin"
    os.makedirs(folder, exist_ok=True)
    for name in programs_present:
        if name not in names(root, "/usr/local/sbin"):
            os.symlink("/.sim/standin", f"{folder}/{name}")
