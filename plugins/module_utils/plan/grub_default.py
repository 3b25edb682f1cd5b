# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/default/grub: the variable GRUB_CMDLINE_LINUX, read and edited where it stands."""

from __future__ import annotations

import re

from .cmdline import Group, edited

PATH = "/etc/default/grub"
ADDED = "# added by bettercompute.bcd"
# An assignment whose value we can edit where it stands: one string as plain as the shell has them (without commands in
# it, whose quotes are another matter), and nothing of the shell's joined to its end.
VARIABLE = re.compile(
    r"""^GRUB_CMDLINE_LINUX=(?:"((?:[^"\\`$]|\\.|\$\w|\$\{\w+\})*)"|'([^']*)'|([\w.,:=/@%+-]*))"""
    r"(?=[ \t\r]*(?:$|;)|[ \t]+#)",
    re.MULTILINE | re.DOTALL,
)
# Any assignment, by what way ever.
ANY = re.compile(r"^(?:[^#\n]*[\s;&|({])?(GRUB_CMDLINE_LINUX)\+?=", re.MULTILINE)
BEFORE = "$GRUB_CMDLINE_LINUX"
ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?GRUB_CMDLINE_LINUX=(.*)$", re.MULTILINE)


def _last(text: str) -> re.Match[str] | None:
    """The last assignment, when it is one that we can edit."""
    found = list(VARIABLE.finditer(text))
    every = [assigned.start(1) for assigned in ANY.finditer(text)]
    return found[-1] if found and found[-1].start() == every[-1] else None


def value(text: str) -> str:
    """What the last assignment gives the variable; empty when there is none, or none that we can edit."""
    last = _last(text)
    return next((part for part in last.groups() if part is not None), "") if last else ""


def with_arguments(text: str, drop: tuple[Group, ...], add: tuple[Group, ...]) -> str:
    """The file with the last assignment edited where it is plain.

    Where it is not, or there is none, a line is added that goes on from what the variable has, and goes when no more of
    ours is in it.
    """
    last = _last(text)
    if not last:
        line = edited(BEFORE if ANY.search(text) else "", (), add)
        gap = "" if not text or text.endswith("\n") else "\n"
        return f'{text}{gap}GRUB_CMDLINE_LINUX="{line}" {ADDED}\n' if add else text
    before = value(text)
    after = edited(before, drop, add)
    if after == before:
        return text
    ours = f" {ADDED}\n"
    if after in ("", BEFORE) and text.startswith(ours, last.end()):
        return text[: last.start()] + text[last.end() + len(ours) :]
    quote = "'" if last.group(2) is not None else '"'
    return f"{text[: last.start()]}GRUB_CMDLINE_LINUX={quote}{after}{quote}{text[last.end() :]}"


def replaces(text: str) -> bool:
    """Whether the file gives the variable a value that does not go on from the one before."""
    return any(not re.search(r"\$\{?GRUB_CMDLINE_LINUX\b", said) for said in ASSIGNED.findall(text))
