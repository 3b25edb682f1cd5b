# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap: what is on, what a boot turns on, and whether the cluster's kubelets mind."""

from __future__ import annotations

from ..core.host import Host
from ..plan.fstab import FSTAB, MARK, swap_lines
from ..plan.kube_seen import KUBELET_CONFIG
from ..plan.swap import SERVICES, SWAPS, TARGET, ZRAM_FILE, Swap, SwapUnit
from ..plan.swap_record import RECORD, Record, parse_record
from ..plan.systemd_asks import FOLDER, FOLDERS
from .systemd import systemd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.step import File
    from ..plan.swap_areas import Area

GENERATED = tuple(f"/run/systemd/{name}" for name in ("generator.early", "generator", "generator.late"))
ZRAM_GENERATORS = tuple(
    f"{folder}/systemd/system-generators/zram-generator" for folder in ("/usr/lib", "/usr/local/lib", "/lib")
)


def swap(host: Host, is_wanted: bool) -> Swap:
    """All of it; where systemd is not PID 1, units and generators are nobody's.

    `is_wanted`: it is not to be turned off but given back, so that it is not looked at how much of it is in use.
    """
    manager = systemd(host)
    fstab = _fstab(host)
    record_file = host.file(RECORD)
    record = parse_record(record_file.text) if record_file else Record()
    zram = _zram(host) if manager.running else ()
    areas = _areas(_without_use(host) if is_wanted else host.read(SWAPS) or "")
    ends = _ends(host, fstab, record) if is_wanted or areas else {}
    return Swap(
        areas=areas,
        fstab=fstab,
        returns=_has_returns(host, fstab, is_wanted),
        units=_units(host, zram) if manager.running else (),
        kept_target=manager.running and is_masked(host, TARGET),
        zram=zram,
        zram_file=host.file(ZRAM_FILE),
        record_file=record_file,
        record=record,
        there=frozenset(
            area.path for area in record.areas if is_wanted and host.exists(ends.get(area.path, area.path))
        ),
        ends=ends,
        available=_available(host) if areas and not is_wanted else 0,
        systemd=manager,
    )


def allowed(host: Host) -> bool:
    """Whether the kubelets of the cluster that this machine is a member of run beside swap."""
    config = host.read(KUBELET_CONFIG)
    if config is None or "failSwapOn" not in config:
        return False
    from ..plan.kubelet_swap import fails_on_swap

    return not fails_on_swap(config)


def _without_use(host: Host) -> str:
    from .swaps import without_use

    return str(host.sight(without_use))


def _areas(text: str) -> tuple[Area, ...]:
    """What is on, by the text of /proc/swaps; a line of titles alone is nothing."""
    if len(text.splitlines()) < 2:
        return ()
    from ..plan.swap_areas import parse_swaps

    return parse_swaps(text)


def _ends(host: Host, fstab: File | None, record: Record) -> dict[str, str]:
    from .swap_sources import ends

    return ends(host, fstab, record)


def _available(host: Host) -> int:
    from .swap_sources import parse_available

    return parse_available(host.read("/proc/meminfo") or "")


def _fstab(host: Host) -> File | None:
    """fstab, with its text also where it is a link."""
    found = host.file(FSTAB)
    return found if found is None or found.regular else found._replace(text=host.read(FSTAB) or "")


def _has_returns(host: Host, fstab: File | None, is_wanted: bool) -> bool:
    """Whether fstab, where it is to be edited, has carriage returns, which a text that was read does not show."""
    if fstab is None or not (swap_lines(fstab.text) or (is_wanted and MARK in fstab.text)):
        return False
    return host.follows(("grep", "-c", "\r", FSTAB), (FSTAB,)).rc == 0


def _units(host: Host, zram: tuple[str, ...]) -> tuple[SwapUnit, ...]:
    """The swap units, without those made of fstab or by zram-generator, and the services that turn swap on."""
    folders: dict[str, str] = {}
    for folder in (*FOLDERS, *GENERATED):
        for name in host.names(folder):
            if name.endswith(".swap") or name in SERVICES:
                folders.setdefault(name, folder)
    made = {f"dev-{device}.swap" for device in zram}
    found = (
        SwapUnit(name, masked=True) if is_masked(host, name) else _unit(host, name, folder, name in made)
        for name, folder in sorted(folders.items())
    )
    return tuple(one for one in found if one is not None)


def _unit(host: Host, name: str, folder: str, is_of_zram: bool) -> SwapUnit | None:
    from .swap_sources import unit

    return unit(host, name, folder, is_of_zram)


def is_masked(host: Host, name: str) -> bool:
    """Whether a unit is kept from being started at all, by /etc: a link to /dev/null, or a file with nothing in it."""
    path = f"{FOLDER}/{name}"
    if host.link(path) == "/dev/null":
        return True
    found = host.file(path)
    return found is not None and found.regular and not found.text


def _zram(host: Host) -> tuple[str, ...]:
    """The devices that zram-generator makes swap of, by all of its files but ours."""
    if not any(host.exists(path) for path in ZRAM_GENERATORS):
        return ()
    from .swap_sources import zram

    return zram(host)
