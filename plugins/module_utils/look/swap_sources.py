# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What turns swap on, on a host that has it: units, services, zram-generator, links to devices; and memory to spare."""

from __future__ import annotations

import posixpath
import re

from ..core.host import Host
from ..core.seen import File
from ..plan.fstab import FSTAB
from ..plan.fstab_swap import nodes
from ..plan.swap import SERVICES, ZRAM_FILE, SwapUnit
from ..plan.swap_record import Record
from ..plan.systemd_asks import FOLDER, RUNS
from .services import enabled, state
from .swap import GENERATED

LINKS = 40  # how many symbolic links a path may go through
ZRAM_CONFIG = tuple(
    f"{folder}/systemd/zram-generator.conf" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib")
)


def parse_available(text: str) -> int:
    """MemAvailable of /proc/meminfo, in KiB."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def ends(host: Host, fstab: File | None, record: Record) -> dict[str, str]:
    """Where those of the paths of both lead that are links, as those of udev and LVM are: to what /proc/swaps names."""
    paths = (*nodes(fstab.text if fstab else ""), *(area.path for area in record.areas))
    found = {path: _end(host, path) for path in paths}
    return {path: last for path, last in found.items() if last != path}


def _end(host: Host, path: str) -> str:
    """Where a path leads, link by link."""
    for _link in range(LINKS):
        target = host.link(path)
        if target is None:
            break
        path = posixpath.normpath(posixpath.join(path.rpartition("/")[0], target))
    return path


def unit(host: Host, name: str, folder: str, is_of_zram: bool) -> SwapUnit | None:
    """A unit that is not masked, in the folder; None for one that a generator made for fstab, or for zram."""
    if folder in GENERATED and (is_of_zram or _is_of_fstab(host, f"{folder}/{name}")):
        return None
    if host.link(f"{folder}/{name}") is not None:  # to disable it would take the file away: swap.target keeps it off
        return SwapUnit(name)
    said = enabled(host, name)
    return SwapUnit(
        name,
        own=folder == FOLDER,
        starts=said.startswith("enabled") or said == "generated",
        runs=name in SERVICES and state(host, name) in RUNS,
    )


def _is_of_fstab(host: Host, path: str) -> bool:
    return f"SourcePath={FSTAB}" in (host.read(path) or "").splitlines()


def zram(host: Host) -> tuple[str, ...]:
    """The devices that zram-generator makes swap of, by all of its files but ours."""
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
