# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap: what is on, what a boot turns on, and whether the cluster's kubelets mind."""

from __future__ import annotations

import posixpath
import re

from ..core.host import Host
from ..core.step import File
from ..plan.fstab import FSTAB, MARK, nodes, swap_lines
from ..plan.kube_seen import KUBELET_CONFIG
from ..plan.swap import SERVICES, SWAPS, TARGET, ZRAM_FILE, Swap, SwapUnit, fails_on_swap, parse_swaps
from ..plan.swap_record import RECORD, Record, parse_record
from ..plan.systemd import FOLDER, FOLDERS, RUNS, asks_enabled
from .systemd import state, systemd

GENERATED = tuple(f"/run/systemd/{name}" for name in ("generator.early", "generator", "generator.late"))
ZRAM_GENERATORS = tuple(
    f"{folder}/systemd/system-generators/zram-generator" for folder in ("/usr/lib", "/usr/local/lib", "/lib")
)
ZRAM_CONFIG = tuple(
    f"{folder}/systemd/zram-generator.conf" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib")
)


def swap(host: Host) -> Swap:
    """All of it; where systemd is not PID 1, units and generators are nobody's."""
    manager = systemd(host)
    fstab = _fstab(host)
    record_file = host.file(RECORD)
    record = parse_record(record_file.text) if record_file else Record()
    zram = _zram(host) if manager.running else ()
    areas = parse_swaps(host.read(SWAPS) or "")
    ends = _ends(host, (*nodes(fstab.text if fstab else ""), *(area.path for area in record.areas)))
    return Swap(
        areas=areas,
        fstab=fstab,
        returns=_has_returns(host, fstab),
        units=_units(host, zram) if manager.running else (),
        kept_target=manager.running and is_masked(host, TARGET),
        zram=zram,
        zram_file=host.file(ZRAM_FILE),
        record_file=record_file,
        record=record,
        there=frozenset(area.path for area in record.areas if host.exists(ends.get(area.path, area.path))),
        ends=ends,
        available=parse_available(host.read("/proc/meminfo") or "") if areas else 0,
        systemd=manager,
    )


def allowed(host: Host) -> bool:
    """Whether the kubelets of the cluster that this machine is a member of run beside swap."""
    config = host.read(KUBELET_CONFIG)
    return config is not None and not fails_on_swap(config)


def parse_available(text: str) -> int:
    """MemAvailable of /proc/meminfo, in KiB."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def _fstab(host: Host) -> File | None:
    """fstab, with its text also where it is a link."""
    found = host.file(FSTAB)
    return found if found is None or found.regular else found._replace(text=host.read(FSTAB) or "")


def _ends(host: Host, paths: tuple[str, ...]) -> dict[str, str]:
    """Where those of the paths lead that are links, as those of udev and LVM are: to what /proc/swaps names."""
    found = {path: _end(host, path) for path in paths}
    return {path: end for path, end in found.items() if end != path}


def _end(host: Host, path: str) -> str:
    for _link in range(40):
        target = host.link(path)
        if target is None:
            break
        path = posixpath.normpath(posixpath.join(path.rpartition("/")[0], target))
    return path


def _has_returns(host: Host, fstab: File | None) -> bool:
    """Whether fstab, where it is to be edited, has carriage returns, which a text that was read does not show."""
    if fstab is None or not (swap_lines(fstab.text) or MARK in fstab.text):
        return False
    return host.ask(("grep", "-c", "\r", FSTAB)).rc == 0


# -- units


def _units(host: Host, zram: tuple[str, ...]) -> tuple[SwapUnit, ...]:
    """The swap units, without those made of fstab or by zram-generator, and the services that turn swap on."""
    folders: dict[str, str] = {}
    for folder in (*FOLDERS, *GENERATED):
        for name in host.names(folder):
            if name.endswith(".swap") or name in SERVICES:
                folders.setdefault(name, folder)
    made = {f"dev-{device}.swap" for device in zram}
    return tuple(
        _unit(host, name, folder)
        for name, folder in sorted(folders.items())
        if folder not in GENERATED or not (name in made or _is_of_fstab(host, f"{folder}/{name}"))
    )


def is_masked(host: Host, name: str) -> bool:
    """Whether a unit is kept from being started at all, by /etc: a link to /dev/null, or a file with nothing in it."""
    path = f"{FOLDER}/{name}"
    if host.link(path) == "/dev/null":
        return True
    found = host.file(path)
    return found is not None and found.regular and not found.text


def _is_of_fstab(host: Host, path: str) -> bool:
    return f"SourcePath={FSTAB}" in (host.read(path) or "").splitlines()


def _unit(host: Host, name: str, folder: str) -> SwapUnit:
    """A unit; one that is masked is asked for nothing, since it was stopped before."""
    if is_masked(host, name):
        return SwapUnit(name, masked=True)
    if host.link(f"{folder}/{name}") is not None:  # to disable it would take the file away: swap.target keeps it off
        return SwapUnit(name)
    enabled = host.ask(asks_enabled(name)).out.strip()
    return SwapUnit(
        name,
        own=folder == FOLDER,
        starts=enabled.startswith("enabled") or enabled == "generated",
        runs=name in SERVICES and state(host, name) in RUNS,
    )


# -- zram-generator


def _zram(host: Host) -> tuple[str, ...]:
    """The devices that zram-generator makes swap of, by all of its files but ours."""
    if not any(host.exists(path) for path in ZRAM_GENERATORS):
        return ()
    paths = [*ZRAM_CONFIG, *(f"{path}.d/{name}" for path in ZRAM_CONFIG for name in host.names(f"{path}.d"))]
    texts = (host.read(path) or "" for path in paths if path.endswith(".conf") and path != ZRAM_FILE)
    return parse_zram("\n".join(texts))


def parse_zram(text: str) -> tuple[str, ...]:
    """zram-generator.conf: a section a device; one with a file system or a mount point is no swap."""
    found: dict[str, bool] = {}
    device = ""
    for raw in text.splitlines():
        line = raw.strip()
        section = re.fullmatch(r"\[(.*)\]", line)
        if section:
            device = section.group(1) if re.fullmatch(r"zram\d+", section.group(1)) else ""
            if device:
                found.setdefault(device, True)
        elif device and "=" in line and not line.startswith(("#", ";")):
            key, _equals, value = (part.strip() for part in line.partition("="))
            if (key == "mount-point" and value) or (key == "fs-type" and value not in ("", "swap")):
                found[device] = False
    return tuple(sorted(name for name, is_swap in found.items() if is_swap))
