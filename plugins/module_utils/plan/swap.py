# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap of a worker: off and kept off, since a kubelet refuses to run beside any line of /proc/swaps; given back later.

A boot turns swap on by lines of fstab, by swap units (of packages, of an administrator, of the generator that finds
partitions by their type), by zram-generator, and by services of their own. Each is kept from it in its own way, and
swap.target is masked, by which systemd starts most of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.plan import Past, Todo
from ..core.step import File
from .files import HEADER, is_as
from .fstab import MARK, swap_lines
from .swap_record import HAND, Record
from .systemd_seen import Systemd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    from .swap_areas import Area
else:
    from ..core.named import NamedTuple

UNIT = "k8s-join"
SWAPS = "/proc/swaps"
TARGET = "swap.target"
ZRAM_FILE = "/etc/systemd/zram-generator.conf.d/zz-bcd-k8s.conf"
# Services that turn swap on by a program of theirs, and how the paths of what they turn on begin.
SERVICES = {
    "dphys-swapfile.service": "/var/swap",
    "swapspace.service": "/var/lib/swapspace/",
    "zram-config.service": "/dev/zram",
    "zramswap.service": "/dev/zram",
}


class SwapUnit(NamedTuple):
    """A swap unit, or one of SERVICES, that is on this machine. `own`: its file lies in /etc, where a mask would be in
    its way. `starts`: a boot starts it. `runs`: a service that is up."""

    name: str
    own: bool = False
    starts: bool = False
    runs: bool = False
    masked: bool = False


class Swap(NamedTuple):
    """What is on, what a boot turns on, and what we recorded.

    `fstab` has its text also where it is a link. `returns`: it is to be edited, and has carriage returns. `zram`:
    devices of zram-generator that become swap ("zram0"). `there`: the recorded paths that exist, where swap is given
    back; `ends`: where paths of the record and of fstab lead that are links, where some is on or given back.
    `available`: memory in KiB that the kernel could give, where some is to go. `kept_target`: swap.target is masked.
    """

    areas: tuple[Area, ...]
    fstab: File | None = None
    returns: bool = False
    units: tuple[SwapUnit, ...] = ()
    kept_target: bool = False
    zram: tuple[str, ...] = ()
    zram_file: File | None = None
    record_file: File | None = None
    record: Record = Record()
    there: frozenset[str] = frozenset()
    ends: Mapping[str, str] = {}
    available: int = 0
    systemd: Systemd = Systemd(False)


def plan(todo: Todo, now: Swap, allowed: bool, past: Past) -> None:
    """Turn swap off and keep it off; where the cluster's kubelets run beside swap (`allowed`), give it back."""
    if allowed:
        restore(todo, now, past)
        return
    if not is_off(now) or (past.owed and _owes_reload(now, past)):
        from .swap_off import turn_off

        turn_off(todo, now, past)
    todo.note(
        *(
            f"swap on {area.path} was on, and nothing that a boot starts names it: it stays off until this machine "
            "leaves its cluster"
            for area in now.record.areas
            if area.by == HAND
        )
    )


def _owes_reload(now: Swap, past: Past) -> bool:
    from .systemd_seen import RELOAD

    return RELOAD in past.owed and now.record_file is not None


def restore(todo: Todo, now: Swap, past: Past) -> None:
    """Give back what was turned off, as recorded; what has our comment and is not recorded is named."""
    if now.record_file is not None or now.zram_file is not None or (now.fstab and MARK.rstrip() in now.fstab.text):
        from .swap_on import give_back

        give_back(todo, now, past)


def is_off(now: Swap) -> bool:
    """Whether nothing is on, and nothing of a boot that is known turns it on."""
    return (
        not now.areas
        and not swap_lines(now.fstab.text if now.fstab else "")
        and not any(unit.starts or unit.runs for unit in now.units)
        and (not now.zram or is_as(now.zram_file, zram_text(now.zram)))
        and (now.kept_target or not now.systemd.running or now.record_file is None)
    )


def zram_text(devices: tuple[str, ...]) -> str:
    """zram-generator makes no device on a host that has more memory than its host-memory-limit, in MiB."""
    return HEADER + "".join(f"[{device}]\nhost-memory-limit = 1\n" for device in devices)
