# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""grubby, on the RHEL family: every entry now, and the files that entries of future kernels are made from.

Those are /etc/kernel/cmdline, where kernel-install finds one, and GRUB_CMDLINE_LINUX in /etc/default/grub, from which
grub2-mkconfig writes entries anew. Newer versions of grubby edit them too, older ones do not: they are edited first, so
that grubby finds them done either way.
"""

from __future__ import annotations

import re

from ..core.step import Effect, Step, fail, run
from . import grub_default
from .cmdline import edited, flat, groups, lacking, rivals, words
from .kernel_cmdline import PATH as KERNEL_CMDLINE
from .kernel_cmdline import with_arguments
from .loader import Boot, Change, Work, edit

INFO = "grubby --info=ALL"
ARGS = re.compile(r'^args="(.*)"$', re.MULTILINE)


def command_lines(info: str) -> tuple[str, ...]:
    """The arguments of every entry, in the order of their indexes."""
    return tuple(ARGS.findall(info))


def work(boot: Boot, change: Change) -> Work:
    """The files, then the entries, all of them checked."""
    said = boot.answers[INFO]
    lines = command_lines(said.out)
    if said.rc != 0 or not lines:
        message = (
            f"{change.unit}: {INFO} exited with {said.rc} and lists no boot entry "
            f"({' '.join(said.err.split())[:200] or 'it said nothing'}): "
            "repair the entries in /boot/loader/entries, and run again"
        )
        return Work((fail("read the boot entries with grubby", message),))
    steps: tuple[Step, ...] = ()
    kernel, default = boot.files.get(KERNEL_CMDLINE), boot.files.get(grub_default.PATH)
    if kernel:
        steps += edit(KERNEL_CMDLINE, kernel, with_arguments(kernel.text, change.stale, change.wanted))
    if default and grub_default.ANY.search(default.text):
        steps += edit(
            grub_default.PATH, default, grub_default.with_arguments(default.text, change.stale, change.wanted)
        )
    steps += _entries(said.out, lines, change)
    return Work(steps, change.foreign(lines), change.created, _rivals(lines, change))


def _entries(info: str, lines: tuple[str, ...], change: Change) -> tuple[Step, ...]:
    differs = any(
        lacking(line, change.wanted) or len(lacking(line, change.stale)) != len(change.stale) for line in lines
    )
    if not differs:
        return ()
    made = ARGS.sub(lambda found: f'args="{edited(found.group(1), change.stale, change.wanted)}"', info)
    calls = [_call(line, change) for line in lines]
    alike = len(set(calls)) == 1
    targets = ("ALL",) if alike else tuple(str(number) for number in range(len(lines)))
    effects = (Effect("answers", INFO, made),)
    return tuple(
        run(
            ("grubby", f"--update-kernel={target}", *call),
            f"set the boot arguments of {'every entry' if alike else f'entry {target}'} with grubby {' '.join(call)}",
            effects=effects,
        )
        for target, call in zip(targets, calls)
        if call
    )


def _call(line: str, change: Change) -> tuple[str, ...]:
    """The options for an entry.

    --args takes out every argument of the same name before it adds: what others have under such a name is given again,
    before ours, so that console=tty0 console=ttyS0 or another page size survive. --remove-args takes exact words.
    None for an entry that is as it should be.
    """
    there = groups(words(line))
    missing = lacking(line, change.wanted)
    leaving = [group for group in change.stale if group in there]
    others = [group for group in there if group not in leaving]
    names = {word.partition("=")[0] for word in flat((*missing, *leaving))}
    again = [word for word in flat(others) if word.partition("=")[0] in names]
    added = (*again, *flat(missing))
    replaced = {word.partition("=")[0] for word in added}
    removed = [word for word in flat(leaving) if word.partition("=")[0] not in replaced]
    options = (f"--remove-args={' '.join(removed)}",) if removed else ()
    return (*options, f"--args={' '.join(added)}") if added else options


def _rivals(lines: tuple[str, ...], change: Change) -> tuple[str, ...]:
    found = dict.fromkeys(group for line in lines for group in rivals(line, change.wanted) if group not in change.stale)
    return tuple(
        f"{change.unit}: {' '.join(group)} is in a boot entry too and is not ours: only one of the two counts, "
        "so take it out with grubby --remove-args"
        for group in found
    )
