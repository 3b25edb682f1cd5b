# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the GPUs show to mig-layout; no more is asked of a GPU than its layout needs."""

from __future__ import annotations

from typing import Any

from ..core.errors import Refused
from ..core.host import Host
from ..core.unknown import is_known, later
from ..plan.gpu import MODES, Gpu
from ..plan.mig import ALL, Layout
from ..plan.mig_boot import SERVICE, WANTED_BY
from ..plan.mig_layout import Settings, is_shown, needs_change
from ..plan.mig_state import QUERIED, InTheWay, Now, Seen, Shown
from ..plan.smi import SMI
from .each_gpu import Row, each_gpu
from .mig import Tables
from .mig_filled import Devices
from .systemd import systemd, unit_file


def now(host: Host, settings: Settings) -> Now:
    """The GPUs, as far as the settings are about them; who uses them only where one may have to change."""
    tables, listed = Tables(host), Devices(host)
    rows = each_gpu(host, QUERIED)
    gpus = tuple(Seen(gpu, later(_shown, tables, listed, gpu, row, settings.of(gpu))) for gpu, row in rows)
    changing = [seen for seen in gpus if later(_needs_change, seen, settings) is not False]
    busy: Any = {}
    in_the_way = InTheWay()
    if changing:  # a host whose GPUs are as they should be asks nobody who uses them
        from .mig_in_the_way import who_uses

        busy, in_the_way = who_uses(host, gpus, [(seen, settings.of(seen.gpu)) for seen in changing])
    system = systemd(host)
    behind = system.running and host.exists(unit_file(host, SERVICE, WANTED_BY).path)
    return Now(
        gpus=gpus,
        busy=busy,
        in_the_way=in_the_way,
        service=unit_file(host, SERVICE, WANTED_BY, ask=behind),
        systemd=system,
        program=host.which(SMI) or f"/usr/bin/{SMI}",
    )


def _shown(tables: Tables, listed: Devices, gpu: Gpu, row: Row, layout: Layout | None) -> Shown:
    """One GPU: its instances where it is managed, and what it offers where they are not the layout by name."""
    shown = _modes(row)
    if layout is None or shown.current not in MODES:
        return shown
    if shown.on:
        gis = later(tables.gpu_instances, gpu.index)
        whole = _as_it_should_be(tables, gpu, layout, shown._replace(gis=gis, cis=later(listed.filling, gpu, gis)))
        if whole is not None:
            return whole
    shown = instances(tables, gpu, row)
    return _as_it_should_be(tables, gpu, layout, shown) or shown._replace(
        offered=later(tables.offered, gpu.index), placements=later(tables.placements, gpu.index)
    )


def _as_it_should_be(tables: Tables, gpu: Gpu, layout: Layout, shown: Shown) -> Shown | None:
    """The GPU where its instances are the layout by name, with what it offers where that tells how many are all."""
    if later(is_shown, layout, shown) is True:
        return shown
    if layout.kind == ALL:
        shown = shown._replace(offered=later(tables.offered, gpu.index))
        if later(is_shown, layout, shown) is True:
            return shown
    return None


def instances(tables: Tables, gpu: Gpu, row: Row) -> Shown:
    """One GPU that shows a mode, with its instances."""
    shown = _modes(row)
    if not shown.on:
        return shown
    gis = later(tables.gpu_instances, gpu.index)
    # They are not asked for where there is no GPU instance to have one.
    cis = () if is_known(gis) and not gis else later(tables.compute_instances, gpu.index)
    return shown._replace(gis=gis, cis=cis)


def _modes(row: Row) -> Shown:
    return Shown(row["mig.mode.current"], row["mig.mode.pending"], _branch(row["driver_version"]))


def _branch(version: str) -> int:
    """550 of "550.163.01"; 0 where it is no version."""
    digits = version.partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _needs_change(seen: Seen, settings: Settings) -> bool:
    try:
        return needs_change(seen.gpu, settings.of(seen.gpu), seen.shown)
    except Refused:  # the plan says it
        return True
