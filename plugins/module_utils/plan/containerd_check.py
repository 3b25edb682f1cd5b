# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A candidate for containerd's files, judged by what containerd makes of it; and a first configuration.

Imported only where something is to be written.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused
from .container_runtime import NVIDIA
from .containerd_merge import (
    NEW_CRI,
    OLD_CRI,
    RUNC,
    Table,
    cri_of,
    is_modern,
    knows_cdi,
    lay,
    runtimes_of,
    shows_cdi,
    shows_nvidia,
    takes_systemd,
    without_systemd,
)
from .containerd_seen import CONFIG, FOLDER, IMPORT, Containerd, Parts
from .containerd_unfit import having
from .toml_text import render

CREATED = "# Created by bettercompute.bcd, which edits nothing in it but imports: the rest is yours.\n"
Path = tuple[str, ...]


def judge(unit: str, now: Containerd, dumps: tuple[Table, Table, Table], parts: Parts, fresh: bool, cni: bool) -> None:
    """Refuse a candidate that comes to nothing, or changes what is not of our parts.

    `dumps` are of the files as they are, of those with what an import of ours brings along, and of the candidate.
    """
    before, base, after = dumps
    refuse_idle(unit, now, after, parts)
    refuse_lost(unit, now, [*lost(before, after, parts, fresh, cni), *brought(before, base)])


def refuse_idle(unit: str, now: Containerd, after: Table, parts: Parts) -> None:
    """Refuse a drop-in of which what it is for does not come out."""
    cri = cri_of(after)
    if cri is None or not _shows(cri, parts):
        before = now.imports[: now.imports.index(now.path)] if now.path in now.imports else ()
        gone = {*before} - {one.path for one in now.read}
        if gone:
            raise Refused(
                f"{unit}: {now.path} comes to nothing, as {CONFIG} imports {', '.join(sorted(gone))} before it, which "
                "is not there, and this containerd imports nothing behind that: take it out of imports"
            )
        behind = (having(now) or [CONFIG])[-1]
        raise Refused(
            f"{unit}: {now.path} comes to nothing, as {behind} is read after it and has a table of the CRI plugin too: "
            f"merge that table into {CONFIG}"
        )


def _shows(cri: Table, parts: Parts) -> bool:
    if (parts.cdi or parts.kube) and knows_cdi(cri) and not shows_cdi(cri, parts.kube):
        return False
    if parts.toolkit and not shows_nvidia(cri, parts.kube or takes_systemd(cri)):
        return False
    return not (parts.kube and without_systemd(cri))


def refuse_lost(unit: str, now: Containerd, names: list[str]) -> None:
    """Refuse what would change values of someone else, by their names."""
    if names:
        brings = f" with {', '.join(now.newly)}, which nothing imports yet," if now.newly else ""
        raise Refused(
            f"{unit}: {now.path}{brings} would change {', '.join(names[:3])} of containerd's configuration: move what "
            f"sets it into {CONFIG}, or take the other file out of {FOLDER}"
        )


def lost(before: Table, after: Table, parts: Parts, fresh: bool, cni: bool) -> list[str]:
    """The values of one dump that another lacks or changes, as dotted names; those of our parts are not counted.

    `fresh`: the systemd cgroup driver of the first configuration is ours; `cni`: so is the folder of CNI's plugins.
    """
    prefix = ("plugins", NEW_CRI if is_modern(before) else OLD_CRI)
    runtimes = (*prefix, "containerd", "runtimes")
    ours: set[Path] = {("imports",), ("version",)}
    if parts.cdi or parts.kube:
        ours |= {(*prefix, "enable_cdi"), (*prefix, "cdi_spec_dirs")}
    if parts.kube:
        ours |= {(*runtimes, name, "options", "SystemdCgroup") for name in without_systemd(cri_of(before) or {})}
    if fresh:
        ours.add((*runtimes, "runc", "options", "SystemdCgroup"))
    if cni:
        ours |= {(*prefix, "cni", "bin_dir"), (*prefix, "cni", "bin_dirs")}
    found = leaves(after)
    return [
        ".".join(path)
        for path, value in leaves(before).items()
        if found.get(path) != value
        and path not in ours
        and not (parts.toolkit and path[: len(runtimes) + 1] == (*runtimes, NVIDIA))
    ]


def brought(before: Table, base: Table) -> list[str]:
    """The values that files which nothing imports yet would add, by their dotted names.

    Not so runtimes: nothing runs in one before it is asked for, and a tool that has lost its import is to have it back.
    """
    cri = ("plugins", NEW_CRI if is_modern(base) else OLD_CRI)
    apart: set[Path] = {("imports",), ("version",)}
    found = leaves(before)
    return [
        ".".join(path)
        for path in leaves(base)
        if path not in found and path not in apart and path[:4] != (*cri, "containerd", "runtimes")
    ]


def leaves(table: Mapping[str, Any], above: Path = ()) -> dict[Path, Any]:
    """Every value of a configuration by its path; an empty table holds none."""
    found: dict[Path, Any] = {}
    for key, value in table.items():
        path = (*above, key)
        if isinstance(value, dict):
            found.update(leaves(value, path))
        else:
            found[path] = value
    return found


def first(now: Containerd, base: Table, parts: Parts) -> str:
    """A first config.toml: containerd's own defaults, our import, and systemd's cgroup driver where systemd runs.

    Where the driver is of a part of our drop-in it is there alone, and goes with it.
    """
    modern = is_modern(base)
    table: Table = {"version": 3 if modern else 2, "imports": [IMPORT]}
    if now.systemd and not parts.kube:
        table["plugins"] = {NEW_CRI if modern else OLD_CRI: systemd_runc(cri_of(base) or {})}
    start = now.text if now.text.endswith("\n") or not now.text else now.text + "\n"
    return (start or CREATED) + render(table)


def systemd_runc(cri: Table) -> Table:
    """The CRI table of a first configuration where systemd runs: the default runc, with the systemd cgroup driver.

    Without it the kubelet's pods do not survive a reboot of such a host.
    """
    runc = copy.deepcopy(runtimes_of(cri).get("runc", {}))
    lay(runc, {"runtime_type": RUNC, "options": {"SystemdCgroup": True}})
    return {"containerd": {"runtimes": {"runc": runc}}}
