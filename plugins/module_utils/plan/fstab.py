# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The swap lines of /etc/fstab that a boot goes by (what they name, and their comments: fstab_swap)."""

from __future__ import annotations

FSTAB = "/etc/fstab"
MARK = "# off while this machine is a Kubernetes worker (bettercompute.bcd): "


def starts_swap(line: str) -> bool:
    """Whether a boot turns swap on for the line: its type is swap, and nothing says noauto. See fstab(5)."""
    fields = line.split()
    if len(fields) < 3 or fields[0].startswith("#") or fields[2] != "swap":
        return False
    return len(fields) < 4 or "noauto" not in fields[3].split(",")


def swap_lines(text: str) -> tuple[str, ...]:
    """The lines that turn swap on, in their order, each once."""
    return tuple(dict.fromkeys(line for line in text.split("\n") if starts_swap(line)))
