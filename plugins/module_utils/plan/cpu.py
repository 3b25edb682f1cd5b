# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu: the frequency governor now, and CPUs isolated from the scheduler from the next boot on."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import Effect, File, set_value
from . import cpulist
from .bootargs import LANE, Arguments, keep_arguments
from .files import HEADER, drop, keep
from .loader import Boot
from .settings import strict
from .unit_names import CPU as UNIT

FIELDS = (Field("governor", "governor", (str,)), Field("isolate", "isolate", (str,)))
CPUS = "/sys/devices/system/cpu"
GOVERNOR = re.compile(r"[a-z][a-z0-9_-]{0,14}")
# systemd-tmpfiles writes it at each boot, before a pass comes.
AT_BOOT = "/etc/tmpfiles.d/bcd-cpu.conf"
# Services that set governors by themselves.
RIVALS = ("tuned", "power-profiles-daemon")


class Settings(NamedTuple):
    """`governor` "" is not managed; `isolate` is a CPU list as it was given, "" for none."""

    governor: str
    isolate: str


class Policy(NamedTuple):
    """CPUs that share one frequency: their governor, and those that their driver offers (None: it does not say)."""

    cpus: tuple[int, ...]
    governor: str
    offered: tuple[str, ...] | None = None


class Now(NamedTuple):
    """What the host shows; `running` is its command line.

    `nohz_full` is None where this kernel has none, `boot` where no boot argument is concerned. `at_boot` is our file
    for the next boot, which `systemd` reads where it runs.
    """

    policies: tuple[Policy, ...] = ()
    present: tuple[int, ...] = ()
    online: tuple[int, ...] = ()
    isolated: str = ""
    nohz_full: str | None = None
    rivals: tuple[str, ...] = ()
    running: str = ""
    boot: Boot | None = None
    at_boot: File | None = None
    systemd: bool = False


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused for what no host could take."""
    wire = strict(UNIT, FIELDS, given)
    governor, isolate = wire.get("governor"), wire.get("isolate", "").strip()
    if governor is not None and not GOVERNOR.fullmatch(governor):
        raise Refused(f"{UNIT}: {governor!r} is no name of a governor: give one such as performance or powersave")
    try:
        cpulist.check_syntax(isolate)
    except ValueError as fault:
        raise Refused(f"{UNIT}: isolate: {fault}: give a CPU list such as 4-63,68-127") from None
    numbers = [item.partition("-")[0] for item in isolate.split(",")]
    if any(number.isdecimal() and int(number) == 0 for number in numbers):
        raise Refused(
            f"{UNIT}: isolate must not include CPU 0, which the kernel needs for itself: take it out of {isolate}"
        )
    return Settings(governor or "", isolate)


def arguments(cpus: str) -> tuple[str, ...]:
    """The kernel arguments that isolate a CPU list: from the scheduler, the tick and RCU's callbacks."""
    return (f"isolcpus=managed_irq,domain,{cpus}", f"nohz_full={cpus}", f"rcu_nocbs={cpus}") if cpus else ()


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """The governor of each policy in a lane of its own, then the boot arguments."""
    todo = Todo()
    cpus = _isolated(settings, now)
    if settings.governor:
        _plan_governor(todo, settings.governor, now)
    else:
        drop(todo, AT_BOOT, now.at_boot, lane=AT_BOOT)
    if now.boot is not None:
        found = keep_arguments(todo, UNIT, arguments(cpus), now.boot, past)
        if cpus and found.loader and LANE not in past.failed:
            _wait(todo, cpus, now, found)
    if not cpus:
        _note_left(todo, now)
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Take out our boot arguments and what sets the governor at boot; the running governor stays."""
    todo = Todo()
    if now.boot is not None:
        keep_arguments(todo, UNIT, (), now.boot, past)
    _note_left(todo, now)
    drop(todo, AT_BOOT, now.at_boot, lane=AT_BOOT)
    todo.note(f"{UNIT}: the governor stays as it is until the next boot")
    return todo.plan()


def _isolated(settings: Settings, now: Now) -> str:
    """The CPUs to isolate, on this host; raises Refused where it lacks one, or would have none left."""
    if not settings.isolate:
        return ""
    last = max(now.present, default=0)
    try:
        cpus = cpulist.parse(settings.isolate, last)
    except ValueError as fault:
        raise Refused(f"{UNIT}: isolate: {fault}: give a CPU list such as 4-63,68-127") from None
    if 0 in cpus:
        raise Refused(f"{UNIT}: isolate must not include CPU 0, which the kernel needs for itself: take it out")
    missing = sorted(set(cpus) - set(now.present))
    if missing:
        raise Refused(
            f"{UNIT}: isolate names {cpulist.render(missing)}, "
            f"and this host has the CPUs {cpulist.render(now.present)}: take out what it lacks"
        )
    if set(now.online) <= set(cpus):
        raise Refused(f"{UNIT}: isolate {settings.isolate} leaves no CPU for the host: keep some of them out")
    return cpulist.render(cpus)


def render_at_boot(governor: str) -> str:
    """tmpfiles.d: write the governor to every CPU that has one."""
    return HEADER + f"w {CPUS}/cpu*/cpufreq/scaling_governor - - - - {governor}\n"


def _plan_governor(todo: Todo, governor: str, now: Now) -> None:
    """Each policy in a lane of its own; what all of them took is written for the next boot."""
    differing = [policy for policy in now.policies if policy.governor != governor]
    lacking = [policy for policy in differing if policy.offered is not None and governor not in policy.offered]
    if lacking:
        cpus = cpulist.render(cpu for policy in lacking for cpu in policy.cpus)
        offered = " ".join(lacking[0].offered or ()) or "none"
        raise Refused(f"{UNIT}: the driver of CPU {cpus} does not have the governor {governor}: it offers {offered}")
    for policy in differing:
        lead = policy.cpus[0]
        others = tuple(
            Effect("file", f"{CPUS}/cpu{cpu}/cpufreq/scaling_governor", governor + "\n") for cpu in policy.cpus[1:]
        )
        todo.add(
            set_value(
                f"{CPUS}/cpu{lead}/cpufreq/scaling_governor",
                governor,
                f"set the governor of CPU {cpulist.render(policy.cpus)} to {governor} (now: {policy.governor})",
                lane=f"cpu{lead}",
                effects=others,
            )
        )
    if now.policies and now.systemd and not differing:
        keep(todo, AT_BOOT, render_at_boot(governor), now.at_boot, lane=AT_BOOT)
    elif not now.policies:
        drop(todo, AT_BOOT, now.at_boot, lane=AT_BOOT)
    for service in now.rivals:
        todo.note(
            f"{UNIT}: {service} is active and sets governors too: make it agree with {governor}, "
            f"or end it with systemctl disable --now {service}"
        )


def _wait(todo: Todo, cpus: str, now: Now, found: Arguments) -> None:
    """Say what of the isolation the running kernel does not have."""
    wanted = cpulist.parse(cpus)
    right = cpulist.parse(now.isolated) == wanted
    if right and found.active:
        if now.nohz_full is None or cpulist.parse(_listed(now.nohz_full)) != wanted:
            shows = "has no nohz_full" if now.nohz_full is None else f'shows nohz_full "{now.nohz_full}"'
            todo.note(f"{UNIT}: the kernel booted with nohz_full={cpus} and {shows}: those CPUs keep their tick")
        return
    if right:
        message = (
            f"{UNIT}: CPUs {cpus} are isolated, and nohz_full={cpus} rcu_nocbs={cpus} "
            f"take effect from the next boot: reboot the node"
        )
    else:
        message = f'{UNIT}: CPUs {cpus} are isolated from the next boot (now: "{now.isolated}"): reboot the node'
    if found.booted_without:
        message += (
            f" (booted without the argument: it was in place for {found.loader} before this boot; "
            "see which loader and which entry the node boots by)"
        )
    elif found.active:
        message += " (booted with the argument: see what else on the kernel command line sets isolcpus)"
    todo.wait("RebootRequired", message)


def _listed(shown: str) -> str:
    """The kernel shows "(null)" for a mask that was never made."""
    return "" if shown == "(null)" else shown


def _note_left(todo: Todo, now: Now) -> None:
    """The record of our arguments is gone by now, and the running kernel still has them."""
    if now.isolated and f" {' '.join(arguments(now.isolated))} " in f" {now.running} ":
        todo.note(f"{UNIT}: CPUs {now.isolated} stay isolated at least until the next boot")
