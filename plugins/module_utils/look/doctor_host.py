# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor looks at of the host itself: the helper's units, root's records and files, disks, lock and clock."""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.lock import PATH as LOCK
from ..core.records import Records as Kept
from ..core.state import STATE
from ..core.unknown import later
from ..plan.assignment import UNIT as DEVICES
from ..plan.doctor_seen import Agent, Config, Disk, Files, Helper, Lock, Program, Records
from ..plan.gpu_sharing_service import SERVICE as MPS
from ..plan.hugepages_units import SERVICE as HUGEPAGES
from ..plan.installed import (
    AGENT_SERVICE,
    AGENT_TIMER,
    GROUP,
    HELPER_SERVICE,
    HELPER_SOCKET,
    PROGRAMS,
    SCRIPT,
    SOCKET,
)
from ..plan.kube_seen import JOIN_FILE, TOKEN_FILE
from ..plan.mig_boot import SERVICE as MIG
from ..plan.service_seen import Service
from ..plan.systemd_asks import RUNNING
from ..plan.systemd_ended import asks_end
from ..plan.unit_names import ORDER
from .installed_units import has_unit
from .services import service, state

NO_LOGIN = ("nologin", "false")
# Below these root writes; each directory from / down is to be root's alone.
WRITTEN = (
    "/etc/bcd",
    "/etc/cdi",
    "/etc/default/grub.d",
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/sysctl.d",
    "/etc/systemd/system",
    "/run/bcd/allocations",
    PROGRAMS,
    f"{STATE}/bootargs",
    f"{STATE}/events",
    f"{STATE}/holds",
    f"{STATE}/k8s",
)
HOLD_ENV = (f"{STATE}/helper-intent.json", f"{STATE}/asked.json")  # with the env lines of holds
TICKS = 100  # a second, in /proc/<pid>/stat


def helper(host: Host) -> Helper:
    """The helper's units, its socket, and who may use it."""
    listens = host.exists(SOCKET)
    if not has_unit(host, HELPER_SOCKET):
        return Helper(listens=listens)
    running = host.exists(RUNNING)
    group, members = _group(host)
    return Helper(
        installed=True,
        socket=service(host, HELPER_SOCKET),
        service=Service("loaded", active=state(host, HELPER_SERVICE) if running else ""),
        listens=listens,
        group=group,
        members=members,
        systemd=running,
    )


def _group(host: Host) -> tuple[int | None, tuple[str, ...]]:
    """The number of the group (None: there is none), and who is in it and can log in."""
    answer = host.ask(("getent", "group", GROUP))
    fields = answer.out.strip().split(":")
    if answer.rc != 0 or len(fields) < 4 or not fields[2].isdecimal():
        return None, ()
    number = int(fields[2])
    own = [
        account[0]
        for account in _accounts(host)
        if account[3] == fields[2] and account[6].rpartition("/")[2] not in NO_LOGIN
    ]
    listed = [name for name in fields[3].split(",") if name]
    return number, tuple(sorted({*own, *listed}))


def _accounts(host: Host) -> list[list[str]]:
    lines = (line.split(":") for line in (host.read("/etc/passwd") or "").splitlines())
    return [fields for fields in lines if len(fields) == 7]


def agent(host: Host) -> Agent:
    """The agent's units, and when its last pass ended; what it came to is added by the front."""
    if not has_unit(host, AGENT_TIMER):
        return Agent()
    running = host.exists(RUNNING)
    up = _seconds(host)
    said = host.ask(asks_end(AGENT_SERVICE)).out.strip() if running else ""
    ended = int(said) // 1_000_000 if said.isdecimal() else 0
    return Agent(
        installed=True,
        timer=service(host, AGENT_TIMER),
        service=Service("loaded", active=state(host, AGENT_SERVICE) if running else ""),
        age=max(0, up - ended) if ended else None,
        up=up,
    )


def _seconds(host: Host) -> int:
    """Since the boot."""
    shown = re.match(r"\d+", host.read("/proc/uptime") or "")
    return int(shown.group()) if shown else 0


def installed_program(host: Host) -> Program:
    """The version of the program that is installed, by the folder that its script runs."""
    found = re.search(rf"{PROGRAMS}/([0-9A-Za-z.+_-]+)", host.read(SCRIPT) or "")
    return Program(found.group(1) if found else "")


def read_as_root(host: Host, name: str) -> None:
    """Raise NotKnownYet where this account may not read the record: Records takes it for one that is not there."""
    host.read(f"{STATE}/{name}.json")


def records(host: Host) -> Records:
    """Root's records: what is damaged, owed and waited for."""
    for name in ("applied", "owed", "tried", "reboot", "asked"):
        read_as_root(host, name)
    kept = Kept(host)
    faults: dict[str, None] = {}
    owed: dict[str, tuple[str, ...]] = {}
    reboot: dict[str, str] = {}
    try:
        kept.applied()
        kept.asked()
        owed = {unit: tuple(sorted(kept.past(unit).owed)) for unit in (*ORDER, DEVICES)}
        reboot = kept.reboot_reasons()
    except StepFailed as fault:
        faults[fault.message] = None
    faults.update(dict.fromkeys((*kept.notes, *_others(host))))
    return Records(
        tuple(faults), {unit: debts for unit, debts in owed.items() if debts}, reboot, _age(host) if reboot else None
    )


def _others(host: Host) -> list[str]:
    """What is wrong with the records of single parts."""
    from .events import events
    from .kube_join import membership
    from .passthrough import passed

    faults = [event.fault for event in events(host) if event.fault]
    for ask in (membership, passed):
        try:
            ask(host)
        except StepFailed as fault:
            faults.append(fault.message)
    return faults


def _age(host: Host) -> int | None:
    """How long units have waited for a reboot for the same reasons, in seconds."""
    said = host.ask(("stat", "-c", "%Y", f"{STATE}/reboot.json")).out.strip()
    return max(0, host.time() - int(said)) if said.isdecimal() else None


def files(host: Host, config: Config) -> Files:
    """Directories that another account could steer, and secrets that others can read, which only root can tell."""
    steered = tuple(dict.fromkeys(path for written in WRITTEN for path in _open(host, written)))
    return Files(steered, later(_readable, host, config))


def _readable(host: Host, config: Config) -> tuple[tuple[str, int], ...]:
    key = next((table["signing_key"] for table in config.tables.values() if "signing_key" in table), None)
    named = (TOKEN_FILE, JOIN_FILE, *HOLD_ENV, key)
    secret = [path for path in named if isinstance(path, str) and path.startswith("/")]
    shown = ((path, host.file(path)) for path in secret)
    return tuple((path, file.mode) for path, file in shown if file and file.regular and file.mode & 0o077)


def _open(host: Host, path: str) -> list[str]:
    """The first directory from / down that is not root's alone, or a link; those that are not there yet are made so."""
    walked = ""
    for part in ("", *path.strip("/").split("/")):
        walked = f"{walked.rstrip('/')}/{part}"
        seen = host.file(walked)
        if seen is not None and (seen.regular or seen.uid != 0 or seen.mode & 0o022):
            return [walked]
    return []


def disks(host: Host) -> tuple[Disk, ...]:
    """What is free where boot images, packages and records are written."""
    found = []
    for path in ("/boot", "/var/lib"):
        lines = host.ask(("df", "-Pk", path)).out.splitlines() if host.exists(path) else []
        fields = lines[-1].split() if len(lines) > 1 else []
        if len(fields) >= 6 and fields[1].isdecimal() and fields[3].isdecimal():
            found.append(Disk(path, int(fields[3]) * 1024, int(fields[1]) * 1024))
    return tuple(found)


def lock(host: Host) -> Lock:
    """Who holds the lock: the process that it names, if the kernel says that this one holds a lock."""
    holder = (host.read(LOCK) or "").strip()
    named = re.search(r"process (\d+)$", holder)
    if not named:
        return Lock()
    locks = (line.split() for line in (host.read("/proc/locks") or "").splitlines())
    if not any(fields[1:2] == ["FLOCK"] and named.group(1) in fields[4:5] for fields in locks):
        return Lock()
    status = (host.read(f"/proc/{named.group(1)}/stat") or "").rpartition(")")[2].split()
    if len(status) < 20 or not status[19].isdecimal():
        return Lock(holder)
    return Lock(holder, max(0, _seconds(host) - int(status[19]) // TICKS))


def clock(host: Host) -> str:
    """Whether the kernel's clock is synchronised, as systemd has it of the kernel, whichever service does it."""
    if not host.exists(RUNNING) or host.which("timedatectl") is None:
        return ""
    said = host.ask(("timedatectl", "show", "--property=NTPSynchronized", "--value")).out.strip()
    return said if said in ("yes", "no") else ""


def failed(host: Host) -> tuple[str, ...]:
    """The services of ours that bring something back at a boot, and failed."""
    if not host.exists(RUNNING):
        return ()
    return tuple(name for name in (HUGEPAGES, MIG, MPS) if has_unit(host, name) and state(host, name) == "failed")
