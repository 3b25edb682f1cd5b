# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the GPUs show to mig-layout; no more is asked of a GPU than its layout needs."""

from __future__ import annotations

from typing import Any

from ..core.errors import Refused, StepFailed
from ..core.host import Host
from ..core.plan import Plan, Todo
from ..core.unknown import is_known, later
from ..plan.gpu import LACKING, MODES, Gpu
from ..plan.gpu_users import is_attendant
from ..plan.mig import ALL, OFF, Layout, layout_of
from ..plan.mig_boot import SERVICE, WANTED_BY
from ..plan.mig_layout import Settings, is_shown, needs_change
from ..plan.mig_state import QUERIED, InTheWay, Now, Seen, Shown, label
from ..plan.smi import SMI
from ..plan.unit_names import MIG_LAYOUT as UNIT
from .each_gpu import Row, each_gpu
from .mig import Tables
from .systemd import is_active, systemd, unit_file


def now(host: Host, settings: Settings) -> Now:
    """The GPUs, as far as the settings are about them; who uses them only where one may have to change."""
    tables = Tables(host)
    rows = each_gpu(host, QUERIED)
    gpus = tuple(Seen(gpu, later(_shown, tables, gpu, row, settings.of(gpu))) for gpu, row in rows)
    changing = [seen for seen in gpus if later(_needs_change, seen, settings) is not False]
    waiting = [seen for seen in changing if later(_may_wait, seen, settings) is True]
    busy: Any = {}
    if changing:
        from .clients import busy as look  # a host whose GPUs are as they should be asks nobody who uses them

        busy = later(look, host, tuple(seen.gpu for seen in gpus))
    system = systemd(host)
    behind = system.running and host.exists(unit_file(host, SERVICE, WANTED_BY).path)
    return Now(
        gpus=gpus,
        busy=busy,
        in_the_way=_in_the_way(host) if waiting else InTheWay(),
        service=unit_file(host, SERVICE, WANTED_BY, ask=behind),
        systemd=system,
        program=host.which(SMI) or f"/usr/bin/{SMI}",
    )


def gathered(host: Host) -> Plan:
    """The layout of every GPU that has MIG, as the option `gpus` takes it with `select: {uuid: ...}`.

    A GPU whose mode waits for a reset has its layout of now, and the mode that waits; the reset is waited for.
    Raises what a GPU that does not answer says: an export that leaves one out is no export.
    """
    tables = Tables(host)
    todo = Todo()
    found = []
    for gpu, row in each_gpu(host, QUERIED):
        if row["mig.mode.current"] not in MODES:
            _refuse_dead(gpu, row["mig.mode.current"])
            continue
        shown = _instances(tables, gpu, row)
        on = MODES.get(shown.pending, shown.on)
        if on is not shown.on:
            todo.wait("RebootRequired", _waits(gpu, on))
        found.append(
            {
                "uuid": gpu.uuid,
                "index": gpu.index,
                "name": gpu.name,
                "layout": layout_of(shown.on, shown.gis, shown.cis),
                "pending": None if on is shown.on else "on" if on else "off",
            }
        )
    todo.found("gpus", found)
    return todo.plan()


def _waits(gpu: Gpu, on: bool) -> str:
    return (
        f"{UNIT}: MIG mode of {label(gpu)} is still {'off' if on else 'on'}, and becomes {'on' if on else 'off'} at a "
        "GPU reset: give the GPU its layout, for which it is reset where nothing holds it, or reboot the node"
    )


def _refuse_dead(gpu: Gpu, shown: str) -> None:
    if shown not in LACKING:
        raise StepFailed(f"{label(gpu)} shows {shown} for its MIG mode: see the kernel's log for it")


def _shown(tables: Tables, gpu: Gpu, row: Row, layout: Layout | None) -> Shown:
    """One GPU: its instances where it is managed, and what it offers where they are not the layout by name."""
    shown = Shown(row["mig.mode.current"], row["mig.mode.pending"], _branch(row["driver_version"]))
    if layout is None or shown.current not in MODES:
        return shown
    shown = _instances(tables, gpu, row)
    if later(is_shown, layout, shown) is True:
        return shown
    shown = shown._replace(offered=later(tables.offered, gpu.index))
    if layout.kind == ALL and later(is_shown, layout, shown) is True:
        return shown
    return shown._replace(placements=later(tables.placements, gpu.index))


def _instances(tables: Tables, gpu: Gpu, row: Row) -> Shown:
    shown = Shown(row["mig.mode.current"], row["mig.mode.pending"], _branch(row["driver_version"]))
    if not shown.on:
        return shown
    gis = later(tables.gpu_instances, gpu.index)
    # They are not asked for where there is no GPU instance to have one.
    cis = () if is_known(gis) and not gis else later(tables.compute_instances, gpu.index)
    return shown._replace(gis=gis, cis=cis)


def _branch(version: str) -> int:
    """550 of "550.163.01"; 0 where it is no version."""
    digits = version.partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _needs_change(seen: Seen, settings: Settings) -> bool:
    try:
        return needs_change(seen.gpu, settings.of(seen.gpu), seen.shown)
    except Refused:  # the plan says it
        return True


def _may_wait(seen: Seen, settings: Settings) -> bool:
    from ..plan.mig_mode import may_wait

    layout = settings.of(seen.gpu)
    return layout is not None and is_known(seen.shown) and may_wait(seen.gpu, seen.shown, layout.kind != OFF)


def _in_the_way(host: Host) -> InTheWay:
    """What may keep a GPU from being reset."""
    from ..plan.mig_mode import DRM, SERVICES
    from .clients import device_holders
    from .kernel import refcnt

    holders = device_holders(host)
    programs = {holder.program for node in holders.values() for holder in node if is_attendant(holder.program)} - {SMI}
    return InTheWay(
        drm=refcnt(host, DRM),
        services=tuple(name for name in SERVICES if is_active(host, name)),
        programs=tuple(sorted(programs)),
    )
