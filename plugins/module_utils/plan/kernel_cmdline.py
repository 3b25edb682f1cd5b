# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/kernel/cmdline: what kernel-install, and tools like it, give the kernels that are installed later."""

from __future__ import annotations

from .cmdline import Group, edited, words
from .loader import Boot, edited_lines

PATH = "/etc/kernel/cmdline"
VENDOR = "/usr/lib/kernel/cmdline"


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def command_line(text: str) -> str:
    """The command line that the file stands for: its lines but comments, joined."""
    return " ".join(line.strip() for line in text.split("\n") if _counts(line))


def with_arguments(text: str, drop: tuple[Group, ...], add: tuple[Group, ...]) -> str:
    """The file edited; comments, blank lines and all other words stay."""
    lines = text.split("\n")
    at = [number for number, line in enumerate(lines) if _counts(line)]
    if not at:
        line = edited("", (), add)
        return f"{line}\n{text}" if line else text
    for number, line in zip(at, edited_lines(tuple(lines[number] for number in at), drop, add)):
        lines[number] = line
    return "\n".join(lines)


def beginning(boot: Boot, booted: tuple[str, ...], ours: tuple[Group, ...]) -> str:
    """What the file holds where it is not there: what kernel-install takes instead, less what the loader added.

    Instead of the running command line, which keeps until the next boot what a unit had before it left, it is the one
    of `booted`, those that the machine boots by, that is nearest to it.
    """
    vendor = boot.files.get(VENDOR)
    running = set(words(boot.running))
    nearest = min(booted, key=lambda line: len(running ^ set(words(line))), default=boot.running)
    line = command_line(vendor.text) if vendor else nearest
    kept = [word for word in words(line) if not word.startswith(("BOOT_IMAGE=", "initrd="))]
    return edited(" ".join(kept), ours, ()) + "\n"
