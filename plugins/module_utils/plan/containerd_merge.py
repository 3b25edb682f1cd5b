# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How containerd lays configuration files over each other, and what its CRI plugin makes of them."""

from __future__ import annotations

from .container_runtime import BINARY, NVIDIA, runs_nvidia, with_spec_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .containerd_seen import Parts

    Table = dict[str, Any]
else:
    Table = dict

OLD_CRI, NEW_CRI = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"  # of version 2, of version 3
RUNC = "io.containerd.runc.v2"
RUNC_TYPES = "io.containerd.runc."  # how the types of runtimes begin whose options have SystemdCgroup


def is_modern(dump: Mapping[str, Any]) -> bool:
    """Whether a dump is of containerd 2.x, which merges files key by key."""
    version = dump.get("version", 2)
    return isinstance(version, int) and version >= 3


def cri_of(dump: Table) -> Table | None:
    """The CRI plugin's table in a dump; None where this containerd has none."""
    return below(dump, "plugins", NEW_CRI if is_modern(dump) else OLD_CRI)


def runtimes_of(cri: Table) -> Table:
    """The CRI plugin's runtimes by name."""
    return below(cri, "containerd", "runtimes") or {}


def knows_cdi(cri: Table) -> bool:
    """Whether this containerd has CDI at all."""
    return "enable_cdi" in cri


def shows_nvidia(cri: Table, systemd: bool) -> bool:
    """Whether the effective configuration has the runtime nvidia, with systemd's cgroups as it is wanted."""
    options = below(runtimes_of(cri), NVIDIA, "options") or {}
    return runs_nvidia(options.get("BinaryName")) and bool(options.get("SystemdCgroup")) == systemd


def shows_cdi(cri: Table, kube: bool) -> bool:
    """Whether CDI is on, and reads the folders that it has to."""
    return cri.get("enable_cdi") is True and with_folders(cri, kube) is None


def with_folders(cri: Table, kube: bool) -> list[str] | None:
    """The folders of specifications with those that have to be among them; None where they are.

    A kubelet's pods get their devices by drivers and plugins that write to /var/run/cdi too.
    """
    given = cri.get("cdi_spec_dirs")
    found = with_spec_folder(given)
    folders = strings(given) if found is None else found
    if kube and not {"/var/run/cdi", "/run/cdi"} & {*folders}:
        return [*folders, "/var/run/cdi"]
    return found


def takes_systemd(cri: Table) -> bool:
    """Whether the runtime that containers have by default takes its cgroups from systemd."""
    default = (below(cri, "containerd") or {}).get("default_runtime_name")
    name = default if isinstance(default, str) and default not in ("", NVIDIA) else "runc"
    return bool((below(runtimes_of(cri), name, "options") or {}).get("SystemdCgroup"))


def without_systemd(cri: Table) -> list[str]:
    """The runtimes of runc's kind that do not take their cgroups from systemd; the one named nvidia is one of them."""
    return [
        name
        for name, runtime in runtimes_of(cri).items()
        if isinstance(runtime, dict)
        and str(runtime.get("runtime_type", "")).startswith(RUNC_TYPES)
        and (below(runtime, "options") or {}).get("SystemdCgroup") is not True
    ]


def changes(cri: Table, parts: Parts) -> Table:
    """Our keys of the CRI plugin, over its effective table, as far as they differ from it."""
    ours: Table = {}
    if (parts.cdi or parts.kube) and knows_cdi(cri):
        folders = with_folders(cri, parts.kube)
        ours.update({} if cri["enable_cdi"] is True else {"enable_cdi": True})
        ours.update({"cdi_spec_dirs": folders} if folders else {})
    runtimes: Table = {}
    if parts.kube:
        for name in without_systemd(cri):
            kind = runtimes_of(cri)[name]["runtime_type"]
            runtimes[name] = {"runtime_type": kind, "options": {"SystemdCgroup": True}}
    if parts.toolkit:
        options = {"BinaryName": BINARY, "SystemdCgroup": parts.kube or takes_systemd(cri)}
        runtimes[NVIDIA] = {"privileged_without_host_devices": False, "runtime_type": RUNC, "options": options}
    return {**ours, **({"containerd": {"runtimes": runtimes}} if runtimes else {})}


def merged(table: Mapping[str, Any], ours: Mapping[str, Any], effective: Table) -> Table:
    """The CRI table of a drop-in for containerd 1.x: `table` as it would be without us, with our keys in it.

    Runtimes that nobody wrote down are there by default only as long as no file writes one down: they are carried from
    the `effective` table.
    """
    from copy import deepcopy

    whole = deepcopy(dict(table))
    lay(whole, ours)
    written = runtimes_of(whole)
    for name, runtime in runtimes_of(effective).items():
        if written and name not in runtimes_of(dict(table)):
            carried = deepcopy(runtime)
            lay(carried, runtimes_of(dict(ours)).get(name, {}))
            written[name] = carried
    return whole


def lay(table: Table, over: Mapping[str, Any]) -> None:
    """Put the keys of `over` into the table, key by key."""
    for key, value in over.items():
        if isinstance(value, dict):
            under = table.get(key)
            if not isinstance(under, dict):
                under = table[key] = {}
            lay(under, value)
        else:
            table[key] = value


def strings(value: Any) -> list[str]:
    """The strings of a list; none of anything else."""
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def below(table: Table, *path: str) -> Table | None:
    """The table at a path; None where there is none."""
    found: Any = table
    for word in path:
        found = found.get(word) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
