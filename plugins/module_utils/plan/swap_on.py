# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Giving swap back: the sources of a boot as they were, then what was on, and the record last."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, Step, command_line, fail, remove, run, write
from .files import drop
from .fstab import FSTAB
from .fstab_swap import left_off, turned_on
from .swap import SERVICES, SWAPS, TARGET, UNIT, ZRAM_FILE, Swap
from .swap_areas import SWAPS_HEADER, Area
from .swap_off import odd
from .swap_record import RECORD, Was
from .systemd import control, reload
from .systemd_asks import asks_enabled
from .systemd_seen import RELOAD


def give_back(todo: Todo, now: Swap, past: Past) -> None:
    """What of our record still is as we left it goes back to what it was; what is gone is named, and left."""
    due = drop(todo, ZRAM_FILE, now.zram_file, owes=(RELOAD,))
    due |= _units(todo, now)
    edited, stuck = _fstab(todo, now)
    due |= edited
    if now.systemd.running:
        reload(todo, now.systemd, (), due, past)
    services, unstarted = _services(now, past)
    areas, unfound = _areas(now, past)
    todo.add(*services, *areas)
    lost = ", ".join((*unstarted, *unfound))
    if now.record_file is not None and not (due or stuck or services or areas):
        stays = f": {lost} stays off, since it is not there or did not come on" if lost else ""
        todo.add(remove(RECORD, f"remove {RECORD}{stays}"))


def _units(todo: Todo, now: Swap) -> bool:
    """Unmask and enable what we masked and disabled; whether a reload is due."""
    due, units = False, {unit.name: unit for unit in now.units}
    for name in now.record.masked:
        if now.kept_target if name == TARGET else name in units and units[name].masked:
            enabled = (Effect("answers", command_line(asks_enabled(name)), "enabled\n"),)
            todo.add(control("unmask", name, owes=(RELOAD,), effects=enabled))
            due = True
    for name in now.record.disabled:
        if name in units and not (units[name].starts or units[name].masked):
            todo.add(control("enable", name, owes=(RELOAD,)))
            due = True
    return due


def _fstab(todo: Todo, now: Swap) -> tuple[bool, bool]:
    """Take back our comments where they still are: whether there was one, and whether one cannot be."""
    text = now.fstab.text if now.fstab else ""
    plain = turned_on(text, now.record.fstab)
    _note_left(todo, now, left_off(plain))
    if now.fstab is None or plain == text:
        return False, False
    action, why = f"take back our comments on the swap lines of {FSTAB}", odd(now)
    if why:
        message = f"{UNIT}: {FSTAB} {why}, or take our comments off its swap lines by hand, and run again"
        todo.add(fail(action, message, lane=FSTAB))
    else:
        todo.add(write(FSTAB, plain, action, mode=now.fstab.mode, owes=(RELOAD,)))
    return not why, bool(why)


def _note_left(todo: Todo, now: Swap, count: int) -> None:
    """Name what has our comment and is not as we wrote it, or not in a record any more, as where that was lost."""
    if not count:
        return
    lines = "1 line has" if count == 1 else f"{count} lines have"
    mask = now.record_file is None and now.kept_target
    todo.note(
        f"in {FSTAB} {lines} our comment still, and not as our record has them: take it off by hand where swap is "
        f"wanted{f', and unmask {TARGET} (systemctl unmask {TARGET})' if mask else ''}"
    )


def _services(now: Swap, past: Past) -> tuple[list[Step], list[str]]:
    """What starts the services that we stopped; and those that are gone, or did not come up."""
    steps: list[Step] = []
    lost: list[str] = []
    units = {unit.name: unit for unit in now.units}
    for name in now.record.stopped:
        start = f"start {name}"
        if name not in units or start in past.vain:
            lost.append(name)
        elif not units[name].runs:
            steps.append(control("start", name, tries=start)._replace(lane=name))
    return steps, lost


def _areas(now: Swap, past: Past) -> tuple[list[Step], list[str]]:
    """What turns the recorded areas on, each in a lane of its own; and those for which nothing does."""
    steps: list[Step] = []
    lost: list[str] = []
    on = list(now.areas)
    for was in now.record.areas:
        end = now.ends.get(was.path, was.path)
        if end in {area.path for area in now.areas} or was.by in SERVICES:
            continue
        if not _can(was, now) or _name(was) in past.vain:
            lost.append(was.path)
            continue
        on.append(Area(end))
        effects = (Effect("file", SWAPS, _shown(on)),)
        steps.append(_turn_on(was, effects)._replace(lane=_name(was)))
    return steps, lost


def _name(was: Was) -> str:
    return f"swapon {was.path}"


def _can(was: Was, now: Swap) -> bool:
    """Whether the area is there; a device of zram-generator comes with its unit."""
    return was.path[len("/dev/") :] in now.zram if was.by.endswith(".swap") else was.path in now.there


def _turn_on(was: Was, effects: tuple[Effect, ...]) -> Step:
    action = f"turn swap on again: {was.path}"
    if was.by.endswith(".swap"):
        return control("start", was.by, action, tries=_name(was), effects=effects)
    priority = ("-p", str(was.priority)) if was.priority >= 0 else ()
    return run(("swapon", *priority, "--", was.path), action, tries=_name(was), effects=effects)


def _shown(areas: list[Area]) -> str:
    """As /proc/swaps shows them."""
    lines = (
        f"{area.path.replace(' ', chr(92) + '040')}\t{area.kind}\t{area.size}\t{area.used}\t-2\n" for area in areas
    )
    return SWAPS_HEADER + "".join(lines)
