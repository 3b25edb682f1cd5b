# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of stand-ins, and what all of them share: the journal and the faults that a test asked for.

A concern (GPUs, packages, Kubernetes) adds its own table to TABLES and its names to programs.txt.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable

from . import (
    bls,
    containers,
    gpu,
    grub,
    initramfs,
    kmod,
    kubernetes,
    mounts,
    ostree,
    packages,
    programs,
    sdboot,
    swaps,
    systemctl,
)
from .machine import append, drop, names, read

Answer = tuple[int, str, str]
StandIn = Callable[[str, list[str]], Answer]
JOURNAL = "/var/log/sim/calls.jsonl"
FAULTS = "/etc/sim/faults.json"
HANG = "/run/sim/hang"

KERNEL: dict[str, StandIn] = {
    "modprobe": kmod.modprobe,
    "rmmod": kmod.rmmod,
    "lsmod": kmod.lsmod,
    "modinfo": kmod.modinfo,
    "depmod": programs.quiet,
    "sysctl": programs.sysctl,
}
BOOT: dict[str, StandIn] = {
    "update-grub": grub.update_grub,
    "grub-mkconfig": grub.grub_mkconfig,
    "grub2-mkconfig": grub.grub_mkconfig,
    "grub-editenv": grub.grub_editenv,
    "grub2-editenv": grub.grub_editenv,
    "grubby": bls.grubby,
    "bootctl": sdboot.bootctl,
    "kernel-install": sdboot.kernel_install,
    "mkinitcpio": sdboot.mkinitcpio,
    "proxmox-boot-tool": sdboot.proxmox_boot_tool,
    "rpm-ostree": ostree.rpm_ostree,
    "dracut": initramfs.dracut,
    "update-initramfs": initramfs.update_initramfs,
    "lsinitramfs": initramfs.lsinitramfs,
    "lsinitrd": initramfs.lsinitramfs,
    "reboot": programs.reboot,
    "shutdown": programs.shutdown,
}
SYSTEM: dict[str, StandIn] = {
    "systemctl": systemctl.systemctl,
    "systemd-detect-virt": programs.detect_virt,
    "mount": mounts.mount_program,
    "umount": mounts.umount,
    "findmnt": mounts.findmnt,
    "swapoff": swaps.swapoff,
    "swapon": swaps.swapon,
    "hostname": programs.hostname,
    "uname": programs.uname,
}
TABLES: tuple[dict[str, StandIn], ...] = (
    KERNEL,
    BOOT,
    SYSTEM,
    gpu.PROGRAMS,
    packages.TABLE,
    containers.TABLE,
    kubernetes.PROGRAMS,
)


def main(argv: list[str], root: str = "/") -> int:
    """Play the program that argv[0] names."""
    name = os.path.basename(argv[0])
    if name == "sudo":
        return programs.sudo(root, argv[1:])
    rc, out, err = play(root, name, argv[1:])
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.stdout.flush()
    return rc


def play(root: str, name: str, argv: list[str]) -> Answer:
    """Run a stand-in and write the call into the journal."""
    began = time.time()
    stand_in: StandIn | None = next((table[name] for table in TABLES if name in table), None)
    answer = _fault(root, name, argv)
    if answer is None and stand_in is None:
        answer = (127, "", f"{name}: the simulator has no such program\n")
    if answer is None and stand_in is not None:
        answer = stand_in(root, argv)
    assert answer is not None
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
