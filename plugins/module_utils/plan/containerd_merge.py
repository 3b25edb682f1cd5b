# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How containerd lays configuration files over each other, and what its CRI plugin makes of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from .container_runtime import BINARY, NVIDIA, runs_nvidia, with_spec_folder

Table = dict[str, Any]
Path = tuple[str, ...]

OLD_CRI, NEW_CRI = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"  # of version 2, of version 3
RUNC = "io.containerd.runc.v2"


def is_modern(dump: Mapping[str, Any]) -> bool:
    """Whether a dump is of containerd 2.x, which merges files key by key."""
    version = dump.get("version", 2)
    return isinstance(version, int) and version >= 3


def cri_of(dump: Table) -> Table | None:
    """The CRI plugin's table in a dump; None where this containerd has none."""
    return _below(dump, "plugins", NEW_CRI if is_modern(dump) else OLD_CRI)


def runtimes_of(cri: Table) -> Table:
    """The CRI plugin's runtimes by name."""
    return _below(cri, "containerd", "runtimes") or {}


def shows(cri: Table, cdi: bool) -> bool:
    """Whether the effective configuration has the runtime nvidia, and CDI where it is wanted."""
    options = _below(runtimes_of(cri), NVIDIA, "options") or {}
    if not runs_nvidia(options.get("BinaryName")) or bool(options.get("SystemdCgroup")) != takes_systemd(cri):
        return False
    return not cdi or (cri.get("enable_cdi") is True and with_spec_folder(cri.get("cdi_spec_dirs")) is None)


def takes_systemd(cri: Table) -> bool:
    """Whether the runtime that containers have by default takes its cgroups from systemd."""
    default = (_below(cri, "containerd") or {}).get("default_runtime_name")
    name = default if isinstance(default, str) and default not in ("", NVIDIA) else "runc"
    return bool((_below(runtimes_of(cri), name, "options") or {}).get("SystemdCgroup"))


def changes(cri: Table, cdi: bool) -> Table:
    """Our keys of the CRI plugin, over its effective table."""
    folders = with_spec_folder(cri.get("cdi_spec_dirs")) if cdi else None
    options = {"BinaryName": BINARY, "SystemdCgroup": takes_systemd(cri)}
    runtime = {"privileged_without_host_devices": False, "runtime_type": RUNC, "options": options}
    return {
        **({"enable_cdi": True} if cdi else {}),
        **({"cdi_spec_dirs": folders} if folders else {}),
        "containerd": {"runtimes": {NVIDIA: runtime}},
    }


def merged(table: Mapping[str, Any], ours: Mapping[str, Any], effective: Table) -> Table:
    """The CRI table of a drop-in for containerd 1.x: `table` as it would be without us, with our keys in it.

    Runtimes that nobody wrote down are there by default only as long as no file writes one down: they are carried from
    the `effective` table.
    """
    whole = copy.deepcopy(dict(table))
    lay(whole, ours)
    for name, runtime in runtimes_of(effective).items():
        if name not in runtimes_of(dict(table)) and name != NVIDIA:
            carried = copy.deepcopy(runtime)
            lay(carried, runtimes_of(dict(ours)).get(name, {}))
            whole["containerd"]["runtimes"][name] = carried
    return whole


def systemd_runc(cri: Table) -> Table:
    """The CRI table of a first configuration where systemd runs: the default runc, with the systemd cgroup driver.

    Without it the kubelet's pods do not survive a reboot of such a host.
    """
    runc = copy.deepcopy(runtimes_of(cri).get("runc", {}))
    lay(runc, {"runtime_type": RUNC, "options": {"SystemdCgroup": True}})
    return {"containerd": {"runtimes": {"runc": runc}}}


def lay(table: Table, over: Mapping[str, Any]) -> None:
    """Put the keys of `over` into the table, key by key."""
    for key, value in over.items():
        if isinstance(value, Mapping):
            below = table.get(key)
            if not isinstance(below, dict):
                below = table[key] = {}
            lay(below, value)
        else:
            table[key] = value


def lost(before: Table, after: Table, fresh: bool) -> list[str]:
    """The values of one dump that another lacks or changes, as dotted names; ours are not counted.

    `fresh`: the systemd cgroup driver is ours too.
    """
    prefix = ("plugins", NEW_CRI if is_modern(before) else OLD_CRI)
    runtimes = (*prefix, "containerd", "runtimes")
    ours = {(*prefix, "enable_cdi"), (*prefix, "cdi_spec_dirs"), ("imports",), ("version",)}
    if fresh:
        ours.add((*runtimes, "runc", "options", "SystemdCgroup"))
    found = leaves(after)
    return [
        ".".join(path)
        for path, value in leaves(before).items()
        if found.get(path) != value and path not in ours and path[: len(runtimes) + 1] != (*runtimes, NVIDIA)
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


def strings(value: Any) -> list[str]:
    """The strings of a list; none of anything else."""
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def _below(table: Table, *path: str) -> Table | None:
    found: Any = table
    for word in path:
        found = found.get(word) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
