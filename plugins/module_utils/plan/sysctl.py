# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sysctl: kernel parameters, set now and at early boot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import File, set_value
from .files import HEADER, drop, keep
from .sysctl_rules import lowers, why_refused
from .unit_names import SYSCTL as UNIT

FILE = "/etc/sysctl.d/90-bcd.conf"
ROOT = "/proc/sys"
# The whole mapping is the wire form: the names are the kernel's.
FIELDS = (Field("", "values", (dict,)),)

NAME = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)+")
LONGEST = 4096  # characters of a string
NUMBERS = range(-(2**63), 2**64)  # what a kernel's word can hold, signed or not
LATER = "{file} sets {name} = {value} after {ours}, and wins at a boot until the next pass: take it out of there"
PLAIN_FILE = "{file} sets {name} = {value}, and wins whenever sysctl --system reads it: take it out of there"
STAYS = "live values stay as they are until a reboot"
UNREAD = "{file} cannot be read: whether it sets a parameter to another value than {ours} is not known"


class Key(NamedTuple):
    """A parameter and its value as text. `name` is in the one form that we write, whatever form was given."""

    name: str  # "net.ipv4.conf.eth0/100.forwarding"
    path: str  # "/proc/sys/net/ipv4/conf/eth0.100/forwarding"
    value: str


class Settings(NamedTuple):
    """The parameters, sorted by name, each path once."""

    keys: tuple[Key, ...]


class Live(NamedTuple):
    """What the kernel shows for a parameter that it has; `text` is None where not even root can read it."""

    text: str | None
    fault: str = ""


class Rival(NamedTuple):
    """Another file that sets parameters of ours at a boot, after our file; `values` by path, None when unreadable."""

    file: str
    values: Mapping[str, str] | None


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
                f"{UNIT}: {other} = {_short(first.value)} and {name} = {_short(key.value)} are one "
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
        raise Refused(f"{name} = {_short(value)} is refused: it would lower the host's defenses")
    return Key(".".join(part.replace(".", "/") for part in parts), "/".join((ROOT, *parts)), value)


def parts_of(name: str) -> tuple[str, ...]:
    """The path parts below /proc/sys, as sysctl.d(5) and sysctl(8) read a name.

    Where the first separator is a dot, dots separate and a slash stands for a dot inside a part
    ("net.ipv4.conf.eth0/100.forwarding"); where it is a slash, slashes separate and dots are plain.
    """
    first = re.search(r"[./]", name)
    if first and first.group() == "/":
        return tuple(name.split("/"))
    return tuple(part.replace("/", ".") for part in name.split("."))


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
    shown = _short(repr(scalar)) if not isinstance(scalar, int) else "an integer that no kernel can hold"
    raise Refused(
        f"{UNIT}: the value of {name} is {shown}: give an integer, true or false, or one printable line of "
        f"at most {LONGEST} characters"
    )


def plain(value: str) -> str:
    """White space collapsed: the kernel separates the values of one parameter by tabs."""
    return " ".join(value.split())


def _short(value: str) -> str:
    return value if len(value) <= 80 else value[:77] + "..."


# -- comparing


def same(asked: str, shown: str) -> bool:
    """Whether the kernel's text means the value: 0x10 is 16 to it, and lists of numbers come back as ranges."""
    pairs = list(zip(asked.split(), shown.split()))
    if len(asked.split()) != len(shown.split()):
        return False
    return all(one == other or _number(one) == other or _is_list(one, other) for one, other in pairs)


def _number(word: str) -> str | None:
    """The number as the kernel reads it, 0x for hexadecimal and 0 for octal, in decimal."""
    for pattern, base in ((r"0[xX][0-9a-fA-F]{1,16}", 16), (r"0[0-7]{1,22}", 8)):
        if re.fullmatch(pattern, word):
            return str(int(word, base))
    return None


def _is_list(asked: str, shown: str) -> bool:
    ranges = _ranges(asked) if {",", "-"} & set(asked) else None
    return ranges is not None and ranges == _ranges(shown)


def _ranges(word: str) -> list[tuple[int, int]] | None:
    """ "8080,8081,9000" as joined ranges, None for what is no such list."""
    if not re.fullmatch(r"[0-9]{1,10}(-[0-9]{1,10})?(,[0-9]{1,10}(-[0-9]{1,10})?)*", word):
        return None
    joined: list[tuple[int, int]] = []
    for first, last in sorted(
        (int(one), int(other or one)) for one, _dash, other in (item.partition("-") for item in word.split(","))
    ):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


# -- files


def render(keys: Iterable[Key]) -> str:
    """sysctl.d: one `name = value` line per key, sorted; a dot inside a part of a name is written as a slash."""
    return HEADER + "".join(f"{key.name} = {key.value}".rstrip() + "\n" for key in keys)


def parse_file(text: str) -> dict[str, str]:
    """A sysctl.d file as values by path; of a name that comes twice the last counts.

    Patterns are left out: a name that a file spells out outranks them, wherever they stand.
    """
    values: dict[str, str] = {}
    for raw in text.splitlines():
        name, equals, value = raw.strip().partition("=")
        name = name.strip().lstrip("-").strip()
        if equals and not raw.strip().startswith(("#", ";")) and NAME.fullmatch(name):
            values["/".join((ROOT, *parts_of(name)))] = plain(value)
    return values


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
                shown = _short(plain(live.text or "")) or "empty"
                todo.add(
                    set_value(
                        key.path,
                        key.value or "\n",
                        f"set {key.name} to {_short(key.value) or 'nothing'} (now: {live.fault or shown})",
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
    todo.note(*rival_notes(settings.keys, now.rivals))
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


def rival_notes(keys: Iterable[Key], rivals: Iterable[Rival], ours: str = FILE) -> list[str]:
    """Who else sets our keys, where the last file to do so sets another value; `ours`: the file that has them."""
    rivals = tuple(rivals)
    notes = [UNREAD.format(file=rival.file, ours=ours) for rival in rivals if rival.values is None]
    for key in keys:
        others = [
            (rival.file, rival.values[key.path])
            for rival in rivals
            if rival.values is not None and key.path in rival.values
        ]
        if others and not same(key.value, others[-1][1]):
            file, value = others[-1]
            sentence = PLAIN_FILE if file == "/etc/sysctl.conf" else LATER
            notes.append(sentence.format(file=file, name=key.name, value=_short(value), ours=ours))
    return notes
