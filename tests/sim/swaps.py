# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap of a simulated host: /proc/swaps, swapon and swapoff, and what a boot turns on."""

from __future__ import annotations

from . import pages
from .machine import put, read, there

Answer = tuple[int, str, str]
TITLES = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
SIZE = 2097148  # KiB of each


def on(root: str) -> list[str]:
    """The lines of /proc/swaps below its titles."""
    return (read(root, "/proc/swaps") or "").splitlines()[1:]


def is_on(root: str, path: str) -> bool:
    """Whether the path is swapped to."""
    return any(line.split()[0] == path for line in on(root))


def _show(root: str, lines: list[str]) -> None:
    put(root, "/proc/swaps", TITLES + "".join(line + "\n" for line in lines), 0o444)
    pages.totals(root)


def turn_on(root: str, path: str, priority: int = -2) -> str:
    """Swap to a path from now on; what swapon says of one that it cannot take, empty when it can."""
    if not there(root, path):
        return f"swapon: cannot open {path}: No such file or directory\n"
    if is_on(root, path):
        return f"swapon: {path}: swapon failed: Device or resource busy\n"
    kind = "partition" if path.startswith("/dev/") else "file"
    _show(root, [*on(root), f"{path}\t\t\t\t{kind}\t\t{SIZE}\t\t0\t\t{priority}"])
    return ""


def turn_off(root: str, paths: list[str] | None = None) -> None:
    """Swap to these no more; None for all."""
    _show(root, [] if paths is None else [line for line in on(root) if line.split()[0] not in paths])


def boot(root: str, target: bool) -> None:
    """What a boot turns on by fstab; `target`: systemd reaches swap.target."""
    _show(root, [])
    for line in (read(root, "/etc/fstab") or "").splitlines() if target else ():
        fields = line.split()
        options = fields[3].split(",") if len(fields) > 3 else []
        if len(fields) > 2 and not fields[0].startswith("#") and fields[2] == "swap" and "noauto" not in options:
            turn_on(root, fields[0])


def swapoff(root: str, argv: list[str]) -> Answer:
    """swapoff -a | WHAT ..."""
    paths = [word for word in argv if not word.startswith("-")]
    missing = [path for path in paths if not is_on(root, path)]
    turn_off(root, None if "-a" in argv else paths)
    return (
        (4 if missing else 0),
        "",
        "".join(f"swapoff: {path}: swapoff failed: Invalid argument\n" for path in missing),
    )


def swapon(root: str, argv: list[str]) -> Answer:
    """swapon [--show], or [-p PRIORITY] [--] WHAT ..."""
    if not argv or "--show" in argv:
        return 0, "".join(f"{line.split()[0]} {line.split()[1]} {line.split()[2]}K 0B -2\n" for line in on(root)), ""
    words = list(argv)
    priority = -2
    if "-p" in words:
        at = words.index("-p")
        priority = int(words[at + 1])
        del words[at : at + 2]
    said = "".join(turn_on(root, word, priority) for word in words if not word.startswith("-"))
    return (255 if said else 0), "", said
