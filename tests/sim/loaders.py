# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which command line boots next on a simulated host, by the loader that it really boots by.

grub          /etc/default/grub and grub.d, update-grub or grub2-mkconfig, /boot/grub*/grub.cfg (`grub.py`)
grubby        entries in /boot/loader/entries, grubby (`bls.py`)
systemd-boot  entries in the ESP, kernel-install with /etc/kernel/cmdline (`sdboot.py`)
uki           unified images in the ESP, made by kernel-install, dracut or mkinitcpio from the same (`sdboot.py`)
ostree        entries in /boot/loader/entries, rpm-ostree kargs (`ostree.py`)
none          whatever started the machine cannot be configured from inside
"""

from __future__ import annotations

from . import bls, grub, sdboot
from .machine import ROOT_ARGUMENTS, Machine, names, need, read


def next_cmdline(root: str, machine: Machine) -> str:
    """The command line that the loader hands to the kernel at the next boot; raises ValueError when nothing boots."""
    kernel = f"BOOT_IMAGE=/boot/vmlinuz-{machine.kernel} "
    line: str | None = None
    if machine.loader == "grub":
        line = grub.grub_default(
            read(root, f"{grub.grub_directory(root)}/grub.cfg") or "", grub.environment(root).get("saved_entry", "")
        )
    elif machine.loader == "grubby":
        found = bls.entries(root, bls.ENTRIES)
        line = bls.expanded(root, found[bls.default_entry(root, found)]) if found else None
    elif machine.loader == "ostree":
        found = bls.entries(root, bls.ENTRIES)
        line = bls.value(root, found[0], "options") if found else None
    elif machine.loader == "systemd-boot":
        kernel, found = "initrd=\\initrd.img ", bls.entries(root, sdboot.entries_in(machine))
        line = bls.value(root, found[0], "options") if found else None
    elif machine.loader == "uki":
        kernel, folder = "", sdboot.images_in(machine)
        images = [name for name in names(root, folder) if name.endswith(".efi")]
        line = sdboot.image_sections(need(root, f"{folder}/{images[-1]}"))[".cmdline"] if images else None
    else:
        kernel, line = "", f"{ROOT_ARGUMENTS} quiet"
    if line is None:
        raise ValueError(f"the boot loader {machine.loader} has no entry to boot")
    return " ".join((kernel + line).split())
