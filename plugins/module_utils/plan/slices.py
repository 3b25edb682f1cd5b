# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slice of a hold: a systemd slice, and the cgroup v2 files in which the kernel shows what its limits are.

systemd is given what it has properties for, at runtime only: a boot takes them away, and a pass brings them back. It
has none for huge pages, so that controller is enabled by hand down the tree, and its limits are written to the cgroup.
What counts is what the kernel's files read, never an exit status; they are compared as values, since the kernel rounds
memory down to a page and writes CPU lists its own way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..core.errors import Refused, StepFailed
from ..core.plan import Todo
from ..core.step import Effect, Step, command_line, fail, run, set_value
from .assignment import Limits
from .cpulist import parse, render
from .devices_seen import Slice
from .systemd import control
from .systemd_slices import asks_slices, reverts, sets_until_boot

ROOT = "/sys/fs/cgroup"
PARENT = f"{ROOT}/bcd.slice/bcd-alloc.slice"  # a "-" in a slice's name is a level of the tree
TREE = (ROOT, f"{ROOT}/bcd.slice", PARENT)  # top down: a controller is enabled in this order
AVAILABLE = f"{ROOT}/cgroup.controllers"  # is there in cgroup v2 only
CONTROL = "/run/systemd/system.control"  # where systemd keeps properties set at runtime, until the next boot
NAME = re.compile(r"bcd-alloc-([A-Za-z0-9_]{1,80})\.slice", re.ASCII)
ASKS = asks_slices("bcd-alloc-*.slice")
LONGEST = 1024  # characters of a cpulist
PAGE = 65536  # bytes: the largest page of a kernel here, to a multiple of which it may round memory down
HUGE = (("2MB", 2048, "hugepages_2mi"), ("1GB", 1048576, "hugepages_1gi"))  # the kernel's name, KiB, the limit
EMPTY = "populated 0\nfrozen 0\n"  # cgroup.events of a new slice
# What is read of a slice's cgroup.
FILES = (
    *("cpuset.cpus", "cpuset.cpus.effective", "cpuset.mems", "cpuset.mems.effective"),
    *("cpu.max", "memory.max", "memory.high"),
    *(f"hugetlb.{size}.{what}" for size, _kib, _limit in HUGE for what in ("max", "current")),
)


class Property(NamedTuple):
    """A property of systemd's, and the file that shows it: `AllowedCPUs=0-3`, cpuset.cpus, "0-3"."""

    name: str
    value: str
    controller: str
    file: str
    shown: str  # as the kernel may write it, for check mode


def name(allocation: str) -> str:
    """The name of a hold's slice; Refused for an allocation that can have none."""
    found = f"bcd-alloc-{allocation}.slice"
    if not NAME.fullmatch(found):
        raise Refused(f"{found!r} is no name of a slice of ours: give an allocation_id of letters, digits and _")
    return found


def folder(allocation: str) -> str:
    """The directory of its cgroup."""
    return f"{PARENT}/{name(allocation)}"


def fault(limits: Limits | None) -> str:
    """What is wrong with the CPU lists of the limits, a sentence; "" where nothing is."""
    for option, text in (("cpus", limits.cpus), ("mems", limits.mems)) if limits else ():
        if text and len(text) > LONGEST:
            return f"{option} has {len(text)} characters: a list of at most {LONGEST} is taken, such as 0-15,32-47"
        try:
            empty = bool(text) and not parse(text or "")
        except ValueError as why:
            return f"{option} is no list such as 0-15,32-47: {why}"
        if empty:
            return f"{option} is {text!r}, which names nothing: give a list such as 0-15,32-47, or leave it out"
    return ""


# -- the slice as it is to be


def settle(todo: Todo, allocation: str, limits: Limits, seen: Slice | None, controllers: Mapping[str, str]) -> None:
    """Plan the steps that give the slice its limits, in the lane that is open; none where it has them.

    `controllers` is what look.slices.controllers shows. The last step is a barrier: the slice is looked at again before
    the lane goes on. Raises StepFailed, retryable, for limits that are none.
    """
    wrong = fault(limits)
    if wrong:
        raise StepFailed(f"{name(allocation)} cannot be made: {wrong}")
    properties = _properties(limits)
    huge = {size: count * kib * 1024 for size, kib, count in _huge(limits)}
    missing = _missing(allocation, properties, bool(huge), controllers)
    if missing:
        todo.add(fail(f"make {name(allocation)}", missing))
        return
    now = seen or Slice()
    missing = _no_such_pages(allocation, huge, now, controllers)
    steps = [*_start(allocation, properties, now), *_limit_pages(allocation, huge, now, controllers)]
    if not missing and steps:
        todo.add(*steps[:-1], steps[-1]._replace(barrier=True))
        return
    missing = missing or _not_effective(allocation, limits, now)
    if missing:
        todo.add(fail(f"check the limits of {name(allocation)}", missing))


def _missing(allocation: str, properties: tuple[Property, ...], huge: bool, controllers: Mapping[str, str]) -> str:
    """What this host lacks for the slice, a sentence; "" where it has all."""
    if AVAILABLE not in controllers:
        return (
            f"{name(allocation)} needs cgroup v2, and {AVAILABLE} is not there: boot this host with "
            "systemd.unified_cgroup_hierarchy=1, or assign no limits"
        )
    needed = dict.fromkeys([found.controller for found in properties] + (["hugetlb"] if huge else []))
    lacking = [controller for controller in needed if controller not in controllers[AVAILABLE].split()]
    if not lacking:
        return ""
    return (
        f"{name(allocation)} needs the cgroup controller {' and '.join(lacking)}, which {AVAILABLE} does not list: "
        "boot a kernel that has it and does not disable it, or assign no limits of that kind"
    )


def _start(allocation: str, properties: tuple[Property, ...], now: Slice) -> list[Step]:
    """Start the slice and set all its properties at once, where one of them is not what the kernel shows."""
    differ = [found for found in properties if not _is_as(found, now.files.get(found.file))]
    steps = []
    if not now.active and now.drop_ins:  # of a slice of that name before: they would come back with it
        steps.append(_revert(allocation))
    if not now.active:
        appears = Effect("file", f"{folder(allocation)}/cgroup.events", EMPTY)
        asked = Effect("program", command_line(ASKS), f"{name(allocation)} is started")
        steps.append(control("start", name(allocation), effects=(appears, asked)))
    if differ:
        given = tuple(f"{found.name}={found.value}" for found in properties)
        was = ", ".join(f"{found.file} {_said(now.files.get(found.file))}" for found in differ) if now.active else ""
        effects = tuple(
            effect
            for found in properties
            for effect in (
                *_shows(f"{folder(allocation)}/{found.file}", found),
                Effect("file", f"{CONTROL}/{name(allocation)}.d/50-{found.name}.conf"),
            )
        )
        steps.append(
            run(
                sets_until_boot(name(allocation), given),
                f"give {name(allocation)} {' '.join(given)}" + (f" ({was} now)" if was else ""),
                effects=effects,
            )
        )
    return steps


def _shows(path: str, wanted: Property) -> tuple[Effect, ...]:
    """What the kernel's files show of a property that is set; CPUs and nodes are those that are used, too."""
    files = (path, f"{path}.effective") if wanted.controller == "cpuset" else (path,)
    return tuple(Effect("file", file, wanted.shown + "\n") for file in files)


def _limit_pages(allocation: str, huge: Mapping[str, int], now: Slice, controllers: Mapping[str, str]) -> list[Step]:
    """Enable the controller down to the slice, and write its limits in bytes."""
    steps = []
    for place in TREE if huge else ():
        path = f"{place}/cgroup.subtree_control"
        enabled = controllers.get(path, "").split()
        if "hugetlb" not in enabled:
            shown = " ".join([*enabled, "hugetlb"]) + "\n"
            steps.append(
                set_value(
                    path, "+hugetlb", f"enable huge page limits below {place}", effects=(Effect("file", path, shown),)
                )
            )
    for size, limit in huge.items():
        file = f"hugetlb.{size}.max"
        if _number(now.files.get(file)) != limit:
            was = f" ({_said(now.files.get(file))} now)" if now.active else ""
            action = f"limit {name(allocation)} to {limit} bytes of {size} pages{was}"
            steps.append(set_value(f"{folder(allocation)}/{file}", str(limit), action))
    return steps


def _no_such_pages(allocation: str, huge: Mapping[str, int], now: Slice, controllers: Mapping[str, str]) -> str:
    """Which limit the kernel has no file for, although it limits huge pages there; "" where it has all."""
    limited = now.active and "hugetlb" in controllers.get(f"{PARENT}/cgroup.subtree_control", "").split()
    lacking = [size for size in huge if limited and now.files.get(f"hugetlb.{size}.max") is None]
    if not lacking:
        return ""
    return (
        f"{name(allocation)} has no hugetlb.{lacking[0]}.max: this kernel has no pages of {lacking[0]}, so assign none"
    )


def _not_effective(allocation: str, limits: Limits, now: Slice) -> str:
    """Which CPUs or nodes the kernel uses although they are not the slice's: its parent has none of those, say."""
    for what, file, text in (("CPUs", "cpuset.cpus", limits.cpus), ("nodes", "cpuset.mems", limits.mems)):
        effective = now.files.get(f"{file}.effective")
        set_as_given = text and parse(now.files.get(file) or "") == parse(text)
        if text and set_as_given and effective is not None and not set(parse(effective)) <= set(parse(text)):
            return (
                f"{name(allocation)} may use the {what} {effective.strip()} although its {file} is {text}: "
                f"see that those are online, and that bcd.slice and bcd-alloc.slice are not kept from them"
            )
    return ""


# -- the slice that is to go


def stop(todo: Todo, allocation: str, seen: Slice | None) -> None:
    """Plan the end of a slice that nothing runs in, and of what systemd keeps of it; one with a workload is left.

    systemd forgets a slice that it stopped, but not the properties set at runtime, which the next slice of the name
    would get: those it is told to revert, without the daemon-reload that would follow.
    """
    if seen is None or seen.populated:
        return
    if seen.active:
        effects = (
            Effect("gone", folder(allocation)),
            Effect("program", command_line(ASKS), f"{name(allocation)} is stopped"),
        )
        action = f"stop {name(allocation)}, which nothing runs in"
        todo.add(control("stop", name(allocation), action, disruption="none", effects=effects))
    if seen.drop_ins:
        todo.add(_revert(allocation))


def _revert(allocation: str) -> Step:
    """Remove what systemd keeps of the slice's properties; of one that runs, the cgroup would keep the values."""
    return run(
        reverts(name(allocation)),
        f"have systemd forget the limits of {name(allocation)}",
        effects=(Effect("gone", f"{CONTROL}/{name(allocation)}.d"),),
    )


# -- limits as values


def _properties(limits: Limits) -> tuple[Property, ...]:
    """What systemd is to set; what the limits do not say is left alone."""
    found = []
    for option, key, text in (("AllowedCPUs", "cpus", limits.cpus), ("AllowedMemoryNodes", "mems", limits.mems)):
        if text:
            found.append(Property(option, render(parse(text)), "cpuset", f"cpuset.{key}", render(parse(text))))
    if limits.cpu_millis:
        percent = -(-limits.cpu_millis // 10)
        found.append(Property("CPUQuota", f"{percent}%", "cpu", "cpu.max", f"{percent * 1000} 100000"))
    if limits.memory_bytes:
        high = limits.memory_bytes * 9 // 10
        for option, file, most in (("MemoryMax", "max", limits.memory_bytes), ("MemoryHigh", "high", high)):
            found.append(Property(option, str(most), "memory", f"memory.{file}", str(most)))
    return tuple(found)


def _huge(limits: Limits) -> tuple[tuple[str, int, int], ...]:
    """(the kernel's name of the size, its KiB, pages) of each limit of huge pages."""
    given = {"hugepages_2mi": limits.hugepages_2mi, "hugepages_1gi": limits.hugepages_1gi}
    return tuple((size, kib, count) for size, kib, limit in HUGE for count in (given[limit],) if count)


def _is_as(wanted: Property, text: str | None) -> bool:
    """Whether the file shows what the property is to be."""
    if text is None:
        return False
    if wanted.controller == "cpuset":
        try:
            return parse(text) == parse(wanted.value)
        except ValueError:
            return False
    if wanted.controller == "cpu":
        quota, _space, period = text.strip().partition(" ")
        known = quota.isdecimal() and period.isdecimal()
        return known and int(quota) * 100 == int(wanted.value[:-1]) * int(period)
    shown = _number(text)
    return shown is not None and 0 <= int(wanted.value) - shown < PAGE


def _number(text: str | None) -> int | None:
    """A count of bytes; None for "max" and for what is not shown."""
    return int(text) if text is not None and text.strip().isdecimal() else None


def _said(text: str | None) -> str:
    return "is not there" if text is None else f"reads {text.strip() or 'nothing'}"
