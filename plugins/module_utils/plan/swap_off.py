# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turning swap off, and keeping a boot from turning it on: the record first, then each source, then what is on."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, fail, run, write
from .files import keep
from .fstab import FSTAB, swap_lines
from .fstab_swap import nodes, sources, turned_off
from .swap import SERVICES, SWAPS, TARGET, UNIT, ZRAM_FILE, Swap, SwapUnit, zram_text
from .swap_areas import SWAPS_HEADER, Area
from .swap_record import BOOT, HAND, RECORD, Record, Was, render_record
from .systemd import control, reload
from .systemd_seen import RELOAD

SWAPOFF = "swapoff"  # under which it is remembered that it came to nothing
PLAIN = frozenset(
    ":_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)  # what a unit's name has as it is
PATIENCE = 3600.0  # seconds: every used page is read back, from a disk at its worst


def turn_off(todo: Todo, now: Swap, past: Past) -> None:
    """All steps to a machine without swap, now and after a boot."""
    lines = swap_lines(now.fstab.text if now.fstab else "")
    if lines and _cannot_edit(todo, now):
        return
    keep(todo, RECORD, render_record(grown(now)), now.record_file, mode=0o600, why=": more is to be turned off")
    due = False
    if lines and now.fstab:
        text = turned_off(now.fstab.text)
        todo.add(write(FSTAB, text, f"comment the swap lines of {FSTAB}", mode=now.fstab.mode, owes=(RELOAD,)))
        due = True
    if now.zram:
        due |= keep(todo, ZRAM_FILE, zram_text(now.zram), now.zram_file, owes=(RELOAD,))
    for unit in now.units:
        due |= _keep_off(todo, unit)
    if now.systemd.running and not now.kept_target:
        todo.add(control("mask", TARGET, owes=(RELOAD,)))
        due = True
    if now.systemd.running:
        reload(todo, now.systemd, (), due, past)
    if now.areas:
        _swapoff(todo, now, past)


def _cannot_edit(todo: Todo, now: Swap) -> bool:
    """Whether fstab is nothing that can be edited and given back to the byte; the step then fails."""
    why = odd(now)
    if why:
        message = f"{UNIT}: {FSTAB} {why}, or take its swap lines out, and run again"
        todo.add(fail(f"comment the swap lines of {FSTAB}", message))
    return bool(why)


def odd(now: Swap) -> str:
    """What keeps fstab from being edited to the byte, and what mends it; "" for nothing."""
    if now.fstab is not None and not now.fstab.regular:
        return "is not a regular file: put the file itself there"
    return "has carriage returns: give its lines plain ends" if now.returns else ""


def grown(now: Swap) -> Record:
    """The record with all that is about to be turned off.

    An area has the name that fstab has for it: the kernel's names of devices are others after a boot.
    """
    was, known = now.record, {now.ends.get(area.path, area.path) for area in now.record.areas}
    named = {now.ends.get(node, node): node for node in nodes(now.fstab.text if now.fstab else "")}
    return Record(
        areas=was.areas
        + tuple(
            Was(named.get(area.path, area.path), area.priority, BOOT if area.path in named else _by(area, now))
            for area in now.areas
            if area.path not in known
        ),
        fstab=_with(was.fstab, swap_lines(now.fstab.text if now.fstab else "")),
        masked=_with(
            was.masked,
            (
                *(unit.name for unit in now.units if unit.starts and not unit.own),
                *((TARGET,) if now.systemd.running and not now.kept_target else ()),
            ),
        ),
        disabled=_with(was.disabled, tuple(unit.name for unit in now.units if unit.starts and unit.own)),
        stopped=_with(was.stopped, tuple(unit.name for unit in now.units if unit.runs)),
    )


def _with(first: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *more)))


def _by(area: Area, now: Swap) -> str:
    """Who turned the area on, as far as that can be seen."""
    device = area.path.rpartition("/")[2]
    if device in now.zram and area.path == f"/dev/{device}":
        return f"dev-{device}.swap"
    for unit in now.units:
        if unit.runs and area.path.startswith(SERVICES[unit.name]):
            return unit.name
    named = sources(now.fstab.text if now.fstab else "")
    units = [unit.name for unit in now.units if unit.starts]
    if unit_name(area.path) in units:
        return BOOT
    # UUID=... and names below /dev have links to follow: any may be that partition.
    links = any(not one.startswith("/") or one.startswith("/dev/") for one in named)
    links = links or any(name.startswith("dev-") and name.endswith(".swap") for name in units)
    return BOOT if links and area.kind == "partition" else HAND


def unit_name(path: str) -> str:
    """The swap unit of a path, as systemd.unit(5) escapes it: "/var/my-swap" has "var-my\\x2dswap.swap"."""
    plain = "/".join(part for part in path.split("/") if part)
    signs = (chr(byte) for byte in plain.encode("utf-8", "surrogateescape"))
    kept = "".join(
        "-" if sign == "/" else sign if sign in PLAIN and (at or sign != ".") else f"\\x{ord(sign):02x}"
        for at, sign in enumerate(signs)
    )
    return f"{kept}.swap"


def _keep_off(todo: Todo, unit: SwapUnit) -> bool:
    """Stop a service, while its unit file still says how; then keep the unit from a boot. Whether a reload is due."""
    if unit.runs:
        todo.add(control("stop", unit.name))
    if unit.starts:
        todo.add(control("disable" if unit.own else "mask", unit.name, owes=(RELOAD,)))
    return unit.starts


def _swapoff(todo: Todo, now: Swap, past: Past) -> None:
    used = sum(area.used for area in now.areas)
    paths = ", ".join(area.path for area in now.areas)
    memory = (
        f"{_mib(used)} of swap are in use, and {_mib(now.available)} of memory are available, "
        f"{_mib(max(used - now.available, 0))} too few"
    )
    advice = "end what needs the memory, or give the machine more, and run again"
    if SWAPOFF in past.vain:
        said = past.tried.get(SWAPOFF) or f"swapoff -a went through, and {SWAPS} still lists {paths}"
        why = f"{said}; {memory}" if used > now.available else f"{said}; {_mib(used)} of swap are in use"
        todo.wait("NotReady", f"{UNIT}: swap is not off: {why}: {advice}")
    elif used > now.available:
        todo.add(fail(f"turn swap off: {paths}", f"{UNIT}: swap cannot be turned off: {memory}: {advice}"))
    else:
        todo.add(
            run(
                ("swapoff", "-a"),
                f"turn swap off: {paths}",
                timeout=PATIENCE,
                disruption="service",
                barrier=True,  # a join stands on it: /proc/swaps is read before anything else is done
                tries=SWAPOFF,
                effects=(Effect("file", SWAPS, SWAPS_HEADER),),
            )
        )


def _mib(kib: int) -> str:
    """KiB in whole MiB, rounded up."""
    return f"{-(-kib // 1024)} MiB"
