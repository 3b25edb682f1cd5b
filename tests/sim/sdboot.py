# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-boot and unified images of a simulated host: entries and images in its ESP, and what makes them."""

from __future__ import annotations

import json

from . import bls, initramfs
from .machine import Machine, drop, kernels, load, put, read, there

Answer = tuple[int, str, str]


def entries_in(machine: Machine) -> str:
    """The directory of systemd-boot's entries."""
    return f"{machine.esp}/loader/entries"


def images_in(machine: Machine) -> str:
    """The directory of unified images."""
    return f"{machine.esp}/EFI/Linux"


def kernel_cmdline(root: str) -> str:
    """What kernel-install takes: /etc/kernel/cmdline, else /usr/lib/kernel/cmdline, else the running command line."""
    for path in ("/etc/kernel/cmdline", "/usr/lib/kernel/cmdline"):
        text = read(root, path)
        if text is not None:
            return " ".join(text.split())
    words = (read(root, "/proc/cmdline") or "").split()
    return " ".join(word for word in words if not word.startswith(("BOOT_IMAGE=", "initrd=")))


def install_kernel(root: str, machine: Machine, kernel: str) -> None:
    """The entry, or the unified image, of a kernel."""
    identity = (read(root, "/etc/machine-id") or "0" * 32).strip()
    line = kernel_cmdline(root)
    if machine.loader == "uki":
        image = json.dumps({".cmdline": line, ".uname": kernel, ".initrd": initramfs.content(root, machine)})
        put(root, f"{images_in(machine)}/{identity}-{kernel}.efi", "MZ\0" + image + "\n")
    elif machine.loader == "systemd-boot":
        put(
            root,
            f"{entries_in(machine)}/{identity}-{kernel}.conf",
            (
                f"title      Debian GNU/Linux\nversion    {kernel}\nmachine-id {identity}\nsort-key   debian\n"
                f"options    {line}\nlinux      /{identity}/{kernel}/linux\n"
                f"initrd     /{identity}/{kernel}/initrd.img-{kernel}\n"
            ),
        )
        initramfs.build(root, machine, f"{machine.esp}/{identity}/{kernel}/initrd.img-{kernel}")
    elif machine.loader == "grubby":
        put(root, f"{bls.ENTRIES}/{identity}-{kernel}.conf", bls.bls_entry(kernel, line))


def kernel_install(root: str, argv: list[str]) -> Answer:
    """kernel-install add [KERNEL IMAGE], add-all, remove KERNEL, inspect."""
    machine = load(root)
    words = [word for word in argv if not word.startswith("-")]
    verb = words[0] if words else "inspect"
    if verb == "remove":
        identity = (read(root, "/etc/machine-id") or "").strip()
        for folder in (entries_in(machine), images_in(machine), bls.ENTRIES):
            for suffix in (".conf", ".efi"):
                drop(root, f"{folder}/{identity}-{words[1]}{suffix}")
        return 0, "", ""
    if verb == "inspect":
        return 0, f"Machine ID: {(read(root, '/etc/machine-id') or '').strip()}\n", ""
    chosen = kernels(root) if verb == "add-all" else words[1:2] or [machine.kernel]
    for kernel in chosen:
        if not there(root, f"/usr/lib/modules/{kernel}"):
            return 1, "", f"Kernel image for {kernel} not found.\n"
        install_kernel(root, machine, kernel)
    return 0, "", ""


def bootctl(root: str, argv: list[str]) -> Answer:
    """bootctl is-installed, status, list, -p (the ESP), -x."""
    machine = load(root)
    ours = machine.loader in ("systemd-boot", "uki")
    if "is-installed" in argv:
        return (0, "yes\n", "") if ours else (1, "no\n", "")
    if {"-p", "--print-esp-path", "-x", "--print-boot-path"} & set(argv):
        return (0, machine.esp + "\n", "") if ours else (1, "", "Couldn't find EFI system partition.\n")
    if not machine.efi:
        return 1, "", "Not booted with EFI\n"
    product = "systemd-boot 252" if ours else "GRUB 2.06"
    return 0, f"System:\n     Firmware: UEFI 2.70\n\nCurrent Boot Loader:\n      Product: {product}\n", ""


def image_sections(text: str) -> dict[str, str]:
    """The sections of a simulated unified image."""
    found: dict[str, str] = json.loads(text[len("MZ\0") :])
    return found


def regenerate(root: str) -> None:
    """The entries or images of all kernels."""
    for kernel in kernels(root):
        install_kernel(root, load(root), kernel)


def mkinitcpio(root: str, argv: list[str]) -> Answer:
    """mkinitcpio -P | -p PRESET: with unified images it makes those."""
    if not {"-P", "--allpresets", "-p", "--preset"} & set(argv):
        return 1, "", "==> ERROR: No preset given\n"
    regenerate(root)
    return 0, "", ""


def proxmox_boot_tool(root: str, argv: list[str]) -> Answer:
    """proxmox-boot-tool refresh | status: it mounts its partitions while it writes the entries."""
    if argv[:1] == ["status"]:
        return 0, "System currently booted with uefi\n5B0C-6F2E is configured with: uefi\n", ""
    if argv[:1] != ["refresh"]:
        return 1, "", "USAGE: proxmox-boot-tool <commands> [ARGS]\n"
    regenerate(root)
    return 0, "Running hook script 'proxmox-auto-removal'..\nRunning hook script 'zz-proxmox-boot'..\n", ""
