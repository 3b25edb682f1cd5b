# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GRUB on the image's disk: the loader goes straight into the gap behind the MBR, with no loop device and no mount."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from .errors import LabError

SECTOR = 512
# What the loader needs before it can reach /boot/grub for the rest.
MODULES = ("biosdisk", "part_msdos", "ext2", "normal", "search", "search_fs_uuid", "configfile", "serial", "terminal")
PLATFORM = "i386-pc"


def first_menu(kernel: str, root: str, arguments: str) -> str:
    """The menu of the very first boot; update-grub writes the real one from inside."""
    return (
        "serial --unit=0 --speed=115200\nterminal_input serial\nterminal_output serial\n"
        f"linux /boot/vmlinuz-{kernel} root={root} ro {arguments}\ninitrd /boot/initrd.img-{kernel}\nboot\n"
    )


def install_modules(root: Path) -> None:
    """Copies GRUB's modules to /boot/grub of the tree, as grub-install does."""
    target = root / "boot/grub" / PLATFORM
    target.mkdir(parents=True, exist_ok=True)
    for source in (root / "usr/lib/grub" / PLATFORM).iterdir():
        if source.suffix in (".mod", ".lst"):
            (target / source.name).write_bytes(source.read_bytes())


def core_image(root: Path) -> bytes:
    """GRUB's core, made by the tree's own grub-mkimage."""
    name = "tmp/core.img"
    argv = ("chroot", str(root), "grub-mkimage", "-O", PLATFORM, "-p", "(hd0,msdos1)/boot/grub", "-o", f"/{name}")
    subprocess.run((*argv, *MODULES), check=True, stdin=subprocess.DEVNULL)
    image = root / name
    content = image.read_bytes()
    image.unlink()
    return content


def write_loader(disk: Path, boot: bytes, core: bytes, partition_start: int, partition_bytes: int) -> None:
    """Writes the MBR (one active Linux partition) and the core behind it.

    disk: an existing disk image. boot: GRUB's boot.img. Sizes are in bytes. The core must fit into the gap before
    the partition; its first sector expects the rest at sector 2, where it then lies.
    """
    if SECTOR + len(core) > partition_start:
        raise LabError(
            f"GRUB's core of {len(core)} bytes does not fit before the partition at {partition_start}: "
            "move the partition in labvm/recipe.py"
        )
    chs = b"\xfe\xff\xff"  # "use the sector numbers"
    entry = struct.pack("<B3sB3sII", 0x80, chs, 0x83, chs, partition_start // SECTOR, partition_bytes // SECTOR)
    with disk.open("r+b") as stream:
        stream.write(boot[:440])
        stream.seek(446)
        stream.write(entry + bytes(48) + b"\x55\xaa")
        stream.seek(SECTOR)
        stream.write(core)
