# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sysctl: kernel parameters, set now and at early boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import File, set_value
from .files import drop, keep
from .kernel_parameters import (
    NAME,
    ROOT,
    Key,
    Live,
    Rival,
    parse_file,
    parts_of,
    plain,
    render,
    same,
    shortened,
)
from .sysctl_rules import lowers, why_refused
from .unit_names import SYSCTL as UNIT

FILE = "/etc/sysctl.d/90-bcd.conf"
# The whole mapping is the wire form: the names are the kernel's.
FIELDS = (Field("", "values", (dict,)),)

LONGEST = 4096  # characters of a string
NUMBERS = range(-(2**63), 2**64)  # what a kernel's word can hold, signed or not
STAYS = "live values stay as they are until a reboot"


class Settings(NamedTuple):
    """The parameters, sorted by name, each path once."""

    keys: tuple[Key, ...]


class Now(NamedTuple):
    """Our file, the live values by path (None: this kernel has no such parameter), and the rivals in reading order."""

    file: File | None
    live: Mapping[str, Live | None]
    rivals: tuple[Rival, ...] = ()


# -- settings


def check(given: dict[str, Any]) -> Settings:
    """The mapping of names to values as sorted keys; raises Refused naming every key that is never set so."""
    faults: list[str] = []
    named: dict[str, tuple[str, Key]] = {}  # by path: the name as given
    for name, scalar in given.items():
        try:
            key = _key(name, scalar)
        except Refused as fault:
            faults.append(fault.message)
            continue
        other, first = named.setdefault(key.path, (name, key))
        if first.value != key.value:
            faults.append(
                f"{UNIT}: {other} = {shortened(first.value)} and {name} = {shortened(key.value)} are one "
                f"parameter ({key.path}): keep one"
            )
    if faults:
        raise Refused("; ".join(faults))
    return Settings(tuple(sorted((key for _name, key in named.values()), key=lambda key: key.name)))


def _key(name: Any, scalar: Any) -> Key:
    # A leading - would tell sysctl.d to ignore faults of the name behind it.
    if not isinstance(name, str) or not NAME.fullmatch(name) or name.startswith("-"):
        raise Refused(
            f"{UNIT}: {name!r} is no parameter's name (letters, digits, - and _ in parts joined by . or /, "
            "such as vm.swappiness): correct it"
        )
    parts = parts_of(name)
    reason = why_refused(parts)
    if reason:
        raise Refused(f"{name} is refused: {reason}: take it out of the settings")
    value = _text(name, scalar)
    if lowers(parts, value):
        raise Refused(f"{name} = {shortened(value)} is refused: it would lower the host's defenses")
    return Key(".".join(part.replace(".", "/") for part in parts), "/".join((ROOT, *parts)), value)


def _text(name: str, scalar: Any) -> str:
    """The value as one line with single blanks. Strings stay strings: "yes" and "010" are never taken for numbers."""
    if isinstance(scalar, bool):
        return "1" if scalar else "0"
    if isinstance(scalar, float) and scalar.is_integer():
        scalar = int(scalar)  # 10.0, as some serializers write 10
    if isinstance(scalar, int) and scalar in NUMBERS:
        return str(scalar)
    if (
        isinstance(scalar, str)
        and len(scalar) <= LONGEST
        and all(sign == "\t" or sign.isprintable() for sign in scalar)
    ):
        return plain(scalar)
    shown = shortened(repr(scalar)) if not isinstance(scalar, int) else "an integer that no kernel can hold"
    raise Refused(
        f"{UNIT}: the value of {name} is {shown}: give an integer, true or false, or one printable line of "
        f"at most {LONGEST} characters"
    )


# -- the plan


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """Live values first, each in a lane of its own; then our file, with the keys that the kernel has taken or lacks.

    A value that the kernel refuses is never written to the file, where it would fail at every boot. What a kernel
    lacks is: early boot may have it.
    """
    todo = Todo()
    missing: list[str] = []
    due = False
    for key in sorted(settings.keys, key=_turn):
        with todo.lane(key.name):
            live = now.live[key.path]
            if live is None:
                missing.append(key.name)
            elif key.name not in past.failed and not _holds(key, live):
                shown = shortened(plain(live.text or "")) or "empty"
                todo.add(
                    set_value(
                        key.path,
                        key.value or "\n",
                        f"set {key.name} to {shortened(key.value) or 'nothing'} (now: {live.fault or shown})",
                    )
                )
                due = True
    if not due:
        _plan_file(todo, _kept(settings, now, past), now)
    if missing:
        names = ", ".join(sorted(missing))
        todo.wait("NotReady", f"this kernel has no {names} (is the module that provides it loaded?)")
    if not settings.keys:
        todo.note(STAYS)
    if now.rivals:
        from .kernel_parameter_rivals import rival_notes

        todo.note(*rival_notes(settings.keys, now.rivals, FILE))
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Remove our drop-in."""
    todo = Todo()
    drop(todo, FILE, now.file, lane=FILE)
    todo.note(STAYS)
    return todo.plan()


def _turn(key: Key) -> tuple[int, str]:
    """Forwarding and the settings of all interfaces come first: setting them makes the kernel set others."""
    if key.path.endswith("/ip_forward") or key.path.endswith("/conf/all/forwarding"):
        return 0, key.path
    return (1 if "/all/" in key.path else 2), key.path


def _holds(key: Key, live: Live) -> bool:
    if live.fault:
        return False
    if live.text is None:
        raise Refused(
            f"{key.name} is refused: not even root can read it, so it is an action and no value to keep: "
            "take it out of the settings"
        )
    return same(key.value, live.text)


def _kept(settings: Settings, now: Now, past: Past) -> list[Key]:
    """The keys for our file: not what the kernel declines; what failed otherwise stays as far as it was there."""
    there = parse_file(now.file.text) if now.file is not None and now.file.regular else {}
    return [
        key
        for key in settings.keys
        if key.name not in past.failed or (key.name not in past.declined and there.get(key.path) == key.value)
    ]


def _plan_file(todo: Todo, keys: list[Key], now: Now) -> None:
    if keys:
        keep(todo, FILE, render(keys), now.file, lane=FILE)
    else:
        drop(todo, FILE, now.file, lane=FILE)
