# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts of a simulated host: /proc/mounts, and mount, umount, findmnt."""

from __future__ import annotations

import os

from .machine import at, put, read, there

Answer = tuple[int, str, str]


def mounted(root: str, point: str) -> bool:
    """Whether /proc/mounts lists something there."""
    return any(line.split()[1] == point for line in (read(root, "/proc/mounts") or "").splitlines() if line.strip())


def mount(root: str, what: str, point: str, kind: str, options: str) -> None:
    """List it in /proc/mounts, as the kernel shows it."""
    os.makedirs(at(root, point), exist_ok=True)
    shown = options
    if kind == "hugetlbfs":
        wanted = dict(word.partition("=")[::2] for word in options.split(","))
        size = {"1G": "1024M", "1024M": "1024M", "2M": "2M", "2048k": "2M"}.get(wanted.get("pagesize", "2M"), "2M")
        shown = f"rw,relatime,pagesize={size}"
    lines = (read(root, "/proc/mounts") or "") + f"{what} {point} {kind} {shown or 'rw,relatime'} 0 0\n"
    put(root, "/proc/mounts", lines, 0o444)


def unmount(root: str, point: str) -> bool:
    """Take the last mount there out of /proc/mounts; False when there is none."""
    lines = (read(root, "/proc/mounts") or "").splitlines()
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].split()[1] == point:
            del lines[number]
            put(root, "/proc/mounts", "".join(line + "\n" for line in lines), 0o444)
            return True
    return False


def mount_program(root: str, argv: list[str]) -> Answer:
    """mount [-t TYPE] [-o OPTIONS] WHAT WHERE; alone it lists."""
    if not argv:
        lines = [line.split() for line in (read(root, "/proc/mounts") or "").splitlines()]
        return (
            0,
            "".join(f"{what} on {point} type {kind} ({options})\n" for what, point, kind, options, *_unused in lines),
            "",
        )
    kind = argv[argv.index("-t") + 1] if "-t" in argv else "auto"
    options = argv[argv.index("-o") + 1] if "-o" in argv else ""
    words = [
        word for number, word in enumerate(argv) if not word.startswith("-") and argv[number - 1] not in ("-t", "-o")
    ]
    words = words if argv[0].startswith("-") or len(words) == len(argv) else [argv[0], *words]
    if len(words) < 2:
        return 32, "", f"mount: {words[0] if words else ''}: can't find in /etc/fstab.\n"
    what, point = words[-2], words[-1]
    if not os.path.isdir(at(root, point)):
        return 32, "", f"mount: {point}: mount point does not exist.\n"
    if (
        kind == "hugetlbfs"
        and "pagesize=1G" in options
        and not there(root, "/sys/kernel/mm/hugepages/hugepages-1048576kB")
    ):
        return (
            32,
            "",
            f"mount: {point}: wrong fs type, bad option, bad superblock on {what}.\n",
        )
    mount(root, what, point, kind, options)
    return 0, "", ""


def umount(root: str, argv: list[str]) -> Answer:
    """umount WHERE ..."""
    for point in [word for word in argv if not word.startswith("-")]:
        if not unmount(root, point):
            return 32, "", f"umount: {point}: not mounted.\n"
    return 0, "", ""


def findmnt(root: str, argv: list[str]) -> Answer:
    """findmnt [-n] [-o FSTYPE] WHERE."""
    wanted = [word for word in argv if word.startswith("/")]
    for line in reversed((read(root, "/proc/mounts") or "").splitlines()):
        what, point, kind, options = line.split()[:4]
        if not wanted or point == wanted[0]:
            return 0, f"{point} {what} {kind} {options}\n", ""
    return 1, "", ""
