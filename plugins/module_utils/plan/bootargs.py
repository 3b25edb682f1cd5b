# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments on the kernel's command line, owned by a unit as words, on the loader that the machine boots by.

Each loader's own file says what has to change (`grub`, `grubby`, `entries`, `ostree`); here stand the record of what a
unit owns and what the running boot tells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.plan import Past, Todo
from ..core.state import STATE, parse, render
from ..core.step import Step, fail, remove
from .cmdline import flat, groups, lacking
from .files import drop, keep
from .loader import GRUB, GRUBBY, OSTREE, SYSTEMD_BOOT, UKI, Boot, Change, Work, drop_in

RECORDS = f"{STATE}/bootargs"
LANE = "boot arguments"
NAMES = {
    GRUB: "GRUB",
    GRUBBY: "GRUB (grubby)",
    SYSTEMD_BOOT: "systemd-boot",
    UKI: "a unified kernel image",
    OSTREE: "ostree",
}


class Arguments(NamedTuple):
    """How the wanted arguments stand, before any step of this plan."""

    active: bool  # the running kernel has them; when none are wanted: it has none that are ours
    written: bool  # the next boot has them
    booted_without: bool  # they were in place before this boot, which came up without them
    loader: str  # in words, for messages


class Record(NamedTuple):
    """What we last asked for, which of it is ours to remove, in which boot, and the text of a file that we made."""

    arguments: tuple[str, ...] = ()
    owned: tuple[str, ...] = ()
    boot_id: str = ""
    created: str | None = None


def record_path(unit: str) -> str:
    """Where the unit's arguments are recorded."""
    return f"{RECORDS}/{unit}"


def parse_record(path: str, text: str | None) -> Record | None:
    """The record, None when there is none; raises StepFailed for one that is damaged or not of our version."""
    if text is None:
        return None
    found = parse(path, text, _is_record)
    return Record(tuple(found["arguments"]), tuple(found["owned"]), found["boot_id"], found.get("created"))


def _is_record(found: dict[str, Any]) -> bool:
    lists = [found.get("arguments"), found.get("owned")]
    return (
        all(isinstance(words, list) and all(isinstance(word, str) for word in words) for words in lists)
        and isinstance(found.get("boot_id"), str)
        and isinstance(found.get("created"), (str, type(None)))
    )


def render_record(record: Record) -> str:
    """The record as JSON."""
    return render(record._asdict())


def keep_arguments(todo: Todo, unit: str, wanted: tuple[str, ...], boot: Boot, past: Past) -> Arguments:
    """Plan what is missing for the next boot to have exactly these arguments of the unit (none: those of ours go).

    Other arguments keep their place and their order. The steps stand in the lane "boot arguments"; where no loader
    can be changed, that lane fails, and may be tried again.
    """
    known: list[Arguments] = []
    with todo.lane(LANE):
        known.append(_keep(todo, unit, wanted, boot, past))
    return known[0] if known else Arguments(False, False, False, "")  # the lane says after what it is known


def _keep(todo: Todo, unit: str, wanted: tuple[str, ...], boot: Boot, past: Past) -> Arguments:
    path = record_path(unit)
    record = parse_record(path, boot.record.text if boot.record else None)
    known = record or Record()
    asked, owned = groups(wanted), groups(known.owned)
    stale = tuple(group for group in owned if group not in asked)
    created = boot.beginning if known.created is None else known.created
    change = Change(unit, asked, stale, created, past.owed, owned)
    active = not lacking(boot.running, asked) if wanted else len(lacking(boot.running, owned)) == len(owned)
    loader = NAMES.get(boot.loader.kind, "no known boot loader")
    if not boot.loader.tool and (wanted or record):
        todo.add(fail(f"set the boot arguments of {unit}", _no_tool(unit, boot)))
    if not boot.loader.tool:
        return Arguments(active, False, False, loader)
    work = _work(boot, change)
    work = work._replace(steps=_left_over(boot, unit) + work.steps)
    ours = flat(group for group in asked if group in owned or group not in work.foreign)
    kept = known.arguments == wanted and not work.steps
    after = Record(wanted, ours, known.boot_id if kept else past.boot_id, work.created)
    _plan_recorded(todo, path, boot, work, after._replace(owned=flat(stale) + ours), after)
    todo.note(*work.notes)
    earlier = known.arguments == wanted and known.boot_id not in ("", past.boot_id)
    return Arguments(active, not work.steps, bool(wanted) and kept and earlier and not active, loader)


def _plan_recorded(todo: Todo, path: str, boot: Boot, work: Work, before: Record, after: Record) -> None:
    """The steps, under a record that names all that may be ours while they run.

    Only once a look finds nothing left to do is it replaced by one of what is ours now, or removed: what a tool
    reports as done is read back while we still know which arguments are to go.
    """
    if work.steps:
        if after.arguments:
            keep(todo, path, render_record(before), boot.record)
        todo.add(*work.steps)
    elif after.arguments:
        keep(todo, path, render_record(after), boot.record)
    else:
        drop(todo, path, boot.record)


def _work(boot: Boot, change: Change) -> Work:
    """Ask the loader's own planner; each is imported where it is met, since what is imported costs on every host."""
    kind = boot.loader.kind
    if kind == GRUB:
        from .grub import work
    elif kind == GRUBBY:
        from .grubby import work
    elif kind == OSTREE:
        from .ostree import work
    else:
        from .entries import work
    return work(boot, change)


def _left_over(boot: Boot, unit: str) -> tuple[Step, ...]:
    """Our drop-in for update-grub, where the machine boots by another loader since: nothing else would remove it."""
    own = drop_in(unit)
    if boot.loader.tool == "update-grub" or not boot.files.get(own):
        return ()
    owes = ("update-grub",) if boot.loader.kind == GRUB else ()
    return (remove(own, f"remove {own}: this machine boots by {NAMES[boot.loader.kind]} now", owes=owes),)


def _no_tool(unit: str, boot: Boot) -> str:
    needs = {
        GRUB: "this machine boots by GRUB, and none of update-grub, grubby, grub2-mkconfig and grub-mkconfig is there",
        SYSTEMD_BOOT: "this machine boots by systemd-boot, and no loader entry of this system is under /efi, /boot or "
        "/boot/efi (is the EFI system partition mounted?)",
        UKI: "this machine boots a unified kernel image, and none of kernel-install, mkinitcpio and dracut is there",
        OSTREE: "this machine boots by ostree, and rpm-ostree is not there",
    }
    why = needs.get(boot.loader.kind, "no boot loader is known here: neither update-grub nor grubby is there")
    return f"{unit}: cannot set boot arguments: {why}: install what is missing, or set them by hand, and run again"
