# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/default/grub: the variable GRUB_CMDLINE_LINUX, read and edited where it stands."""

from __future__ import annotations

import re

from .cmdline import Group, edited

PATH = "/etc/default/grub"
ADDED = "# added by bettercompute.bcd"
VARIABLE = re.compile(r"""^GRUB_CMDLINE_LINUX=(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s#;]*))""", re.MULTILINE | re.DOTALL)
ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?GRUB_CMDLINE_LINUX=(.*)$", re.MULTILINE)


def value(text: str) -> str:
    """What the last assignment gives the variable; empty when there is none."""
    found = list(VARIABLE.finditer(text))
    return next((part for part in found[-1].groups() if part is not None), "") if found else ""


def with_arguments(text: str, drop: tuple[Group, ...], add: tuple[Group, ...]) -> str:
    """The file with the last assignment edited; where there is none a line is added, which goes when it is empty."""
    found = list(VARIABLE.finditer(text))
    if not found:
        line = edited("", (), add)
        gap = "" if not text or text.endswith("\n") else "\n"
        return f'{text}{gap}GRUB_CMDLINE_LINUX="{line}" {ADDED}\n' if line else text
    last = found[-1]
    before = value(text)
    after = edited(before, drop, add)
    if after == before:
        return text
    ours = f" {ADDED}\n"
    if not after and text.startswith(ours, last.end()):
        return text[: last.start()] + text[last.end() + len(ours) :]
    quote = "'" if last.group(2) is not None else '"'
    return f"{text[: last.start()]}GRUB_CMDLINE_LINUX={quote}{after}{quote}{text[last.end() :]}"


def replaces(text: str) -> bool:
    """Whether the file gives the variable a value that does not go on from the one before."""
    return any(not re.search(r"\$\{?GRUB_CMDLINE_LINUX\b", said) for said in ASSIGNED.findall(text))
