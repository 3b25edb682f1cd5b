# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GRUB where its menu is generated: a drop-in that update-grub reads, or our words in /etc/default/grub.

The generated menu is held to the outcome: every entry that boots Linux by the distribution's own script, recovery
entries too, since those take GRUB_CMDLINE_LINUX as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.step import Effect, Step, fail, run
from . import grub_default
from .cmdline import Group, edited, flat, groups, lacking, rivals, words
from .files import HEADER, is_as
from .loader import DROP_INS, Boot, Change, Work, drop_in, edit

DEBT = "update-grub"
SECTION = re.compile(r"### (BEGIN|END) (\S+) ###")
LINUX = re.compile(r"(\s*linux(?:16|efi)?\s+\S+[ \t]*)(.*)", re.DOTALL)


def render(wanted: tuple[Group, ...]) -> str:
    """The drop-in: the variable goes on from the value it has."""
    return f'{HEADER}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(flat(wanted))}"\n'


def command_lines(menu: str) -> tuple[str, ...]:
    """The arguments of every entry that our variable reaches: see _each."""
    found: list[str] = []

    def seen(line: str) -> str:
        found.append(line)
        return line

    _each(menu, seen)
    return tuple(found)


def predicted(menu: str, drop: tuple[Group, ...], add: tuple[Group, ...]) -> str:
    """The menu as the generator will write it, as far as a look compares it: our words on the lines that they reach."""
    return _each(menu, lambda line: edited(line, drop, add))


def _each(menu: str, change: Callable[[str], str]) -> str:
    """The menu with `change` applied to the arguments of each `linux` line.

    Sections of other scripts than NN_linux* boot other systems or what an administrator wrote by hand, and are left
    out, unless the menu has no such section.
    """
    lines = menu.splitlines(keepends=True)
    sections: list[str] = []
    inside = ""
    for line in lines:
        mark = SECTION.match(line)
        if mark:
            inside = mark.group(2).rpartition("/")[2] if mark.group(1) == "BEGIN" else ""
        sections.append(inside)
    linux = [bool(LINUX.match(line)) for line in lines]
    ours = [is_linux and bool(re.match(r"\d+_linux", name)) for is_linux, name in zip(linux, sections)]
    chosen = ours if any(ours) else linux
    for at, line in enumerate(lines):
        found = LINUX.match(line) if chosen[at] else None
        if found:
            body = found.group(2).rstrip("\r\n")
            lines[at] = found.group(1) + change(body) + found.group(2)[len(body) :]
    return "".join(lines)


def work(boot: Boot, change: Change) -> Work:
    """The drop-in or the words, then the generator, whenever the menu does not show what it should."""
    own = drop_in(change.unit)
    ours = boot.files.get(own)
    foreign: tuple[Group, ...] = ()
    if boot.loader.tool == "update-grub":
        source = _drop_in_steps(own, boot, change)
        stale = change.stale + (_held(ours.text) if ours and source else ())
        others = [file.text for path, file in boot.files.items() if path != own and file]
    else:
        now = boot.files.get(grub_default.PATH)
        text = now.text if now else ""
        had = groups(words(grub_default.value(text)))
        foreign = tuple(group for group in change.wanted if group in had)
        after = grub_default.with_arguments(text, change.stale, change.wanted)
        created = change.created if now else ""
        source = edit(grub_default.PATH, now, after, created, (DEBT,)) if after != text else ()
        stale, others = change.stale, [after]
    stale = tuple(group for group in stale if not any(_says(text, group) for text in others))
    made = _made(boot, change, stale, bool(source))
    default = boot.files.get(grub_default.PATH)
    created = "" if boot.loader.tool != "update-grub" and default is None else change.created
    return Work(source + made, foreign, created, _rivals(boot, change, own))


def _says(text: str, group: Group) -> bool:
    """Whether a file of GRUB's settings has the group, outside comments: then the menu keeps it without us."""
    wanted = r"\s+".join(re.escape(word) for word in group)
    return bool(re.search(rf"^(?![ \t]*#)(?:.*[\s\"'=])?{wanted}(?=[\s\"';]|$)", text, re.MULTILINE))


def _held(text: str) -> tuple[Group, ...]:
    """What a drop-in of ours adds."""
    said = grub_default.value(text)
    return groups(word for word in words(said) if word != "$GRUB_CMDLINE_LINUX")


def _drop_in_steps(own: str, boot: Boot, change: Change) -> tuple[Step, ...]:
    from ..core.step import remove, write

    now = boot.files.get(own)
    if not change.wanted:
        return (remove(own, f"remove {own}", owes=(DEBT,)),) if now else ()
    text = render(change.wanted)
    if is_as(now, text):
        return ()
    again = " again: it is not as we keep it" if now else ""
    return (write(own, text, f"write {own}{again}", owes=(DEBT,)),)


def _made(boot: Boot, change: Change, stale: tuple[Group, ...], changed: bool) -> tuple[Step, ...]:
    """The generator's run, when the menu's sources change, a run is owed, or the menu is not what they say."""
    path, menu = next(iter(boot.made.items()))
    lines = command_lines(menu)
    short = tuple(dict.fromkeys(group for line in lines for group in lacking(line, change.wanted)))
    left = any(group in groups(words(line)) for line in lines for group in stale)
    differs = bool(short) or left or not menu
    if not (changed or DEBT in change.owed or (differs and (change.wanted or stale))):
        return ()
    overriding = _overriding(boot, change)
    if short and overriding and not changed and DEBT not in change.owed:
        said = " ".join(flat(short))
        message = (
            f"{change.unit}: {boot.loader.tool} ran and {path} lacks {said}: "
            f"{overriding} overrides GRUB_CMDLINE_LINUX: "
            "let it go on from $GRUB_CMDLINE_LINUX, or take it out, and run again"
        )
        return (fail(f"have {said} in {path}", message),)
    tool = boot.loader.tool
    argv = (tool,) if tool == "update-grub" else (tool, "-o", path)
    shown = menu if overriding else predicted(menu, stale, change.wanted) or "# generated\n"
    return (run(argv, f"write {path} with {tool}", pays=(DEBT,), effects=(Effect("file", path, shown),)),)


def _overriding(boot: Boot, change: Change) -> str:
    """A drop-in that sorts after ours and sets the variable anew, so that ours is lost; "" when there is none."""
    own = drop_in(change.unit)
    if boot.loader.tool != "update-grub" or not change.wanted:
        return ""
    later = sorted(path for path in boot.files if path.startswith(DROP_INS + "/") and path > own)
    for path in reversed(later):
        file = boot.files[path]
        if file and grub_default.replaces(file.text):
            return path
    return ""


def _rivals(boot: Boot, change: Change, own: str) -> tuple[str, ...]:
    """Notes on arguments of others that set the same thing to something else."""
    found: dict[Group, None] = {}
    for menu in boot.made.values():
        for line in command_lines(menu):
            found.update((group, None) for group in rivals(line, change.wanted) if group not in change.stale)
    held = boot.files.get(own)
    mine = _held(held.text) if held else ()
    notes = []
    for group in found:
        if group in mine:
            continue
        word = " ".join(group)
        where = [path for path, file in boot.files.items() if path != own and file and group[-1] in file.text]
        place = f" (in {', '.join(where)})" if where else ""
        notes.append(
            f"{change.unit}: {word} is on the kernel command line too{place} and is not ours: "
            "only one of the two counts, so take it out there"
        )
    return tuple(notes)
