# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers get of the vendor's CDI specifications: the edits of a device and those of all, and of which file.

A file in /run/cdi outranks one in /etc/cdi, as runtimes have it. An older version of CDI cannot say everything: what a
ceiling leaves out is told, and what a container cannot be without is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import StepFailed
from . import cdi
from .devices_seen import Vendor

Edits = Mapping[str, Any]

ORDER = ("env", "deviceNodes", "netDevices", "mounts", "hooks", "intelRdt", "additionalGids")  # as they are written
EVERY_GPU = "all"  # the one device that NVIDIA's specification has on WSL
MAKE = "let container_toolkit make it again, or run nvidia-ctk cdi generate --device-name-strategy=uuid"
SINCE_1_1 = ("schemata", "enableMonitoring")  # of intelRdt
BINDS = ("bind", "rbind")  # mount options


class Source(NamedTuple):
    """The entry of a device in a vendor's file, which is sound."""

    path: str
    device: Edits
    common: Edits


def source(visible: str, vendors: Sequence[Vendor], wsl: bool) -> Source:
    """The entry that stands for the GPU or MIG device of this UUID, in the file that outranks the others.

    An entry without edits is none, and only on WSL does one for all GPUs stand for a GPU. Raises StepFailed naming the
    file where there is none, or where a file that would outrank what is found cannot be read.
    """
    names = (visible, EVERY_GPU) if wsl else (visible,)
    for vendor in reversed(vendors):
        if vendor.spec is None:
            said = vendor.fault if vendor.fault.startswith(vendor.path) else f"{vendor.path}: {vendor.fault}"
            raise StepFailed(f"{said}: without it nothing is known of {visible}: {MAKE}")
        entries = {device["name"]: device["containerEdits"] for device in vendor.spec["devices"]}
        for name in names:
            if any(entries.get(name, {}).values()):
                return Source(vendor.path, entries[name], vendor.spec.get("containerEdits") or {})
    files = ", ".join(vendor.path for vendor in vendors)
    raise StepFailed(f"{files}: no device {visible} with edits is in it: {MAKE}")


def sources(visible: Iterable[str], vendors: Sequence[Vendor], wsl: bool) -> dict[str, Source]:
    """The entries of several, by UUID."""
    return {uuid: source(uuid, vendors, wsl) for uuid in visible}


def commons(found: Mapping[str, Source], vendors: Sequence[Vendor]) -> list[Edits]:
    """The edits for all devices, of each file that an entry comes from, the outranking one first."""
    by_path = {entry.path: entry.common for entry in found.values()}
    return [by_path[vendor.path] for vendor in reversed(vendors) if vendor.path in by_path]


def merged(*layers: Edits) -> dict[str, Any]:
    """Several edits as one. What one layer has is not taken from a later one: a variable, a node, a mount point."""
    found: dict[str, Any] = {}
    for kind in ORDER:
        given = [layer[kind] for layer in layers if layer.get(kind)]
        if kind == "intelRdt":
            found[kind] = _plain(given[0]) if given else None
            continue
        taken: list[Any] = []
        seen: set[Any] = set()
        for elements in given:
            fresh = [(_identity(kind, element), element) for element in elements]
            taken += [_plain(element) for key, element in fresh if key not in seen]
            seen.update(key for key, _element in fresh)
        found[kind] = taken
    return {kind: edits for kind, edits in found.items() if edits}


def without(edits: Edits, variables: Iterable[str]) -> Edits:
    """The edits less what they set of these environment variables."""
    ours = set(variables)
    return {**edits, "env": [line for line in edits.get("env") or () if _identity("env", line) not in ours]}


def _identity(kind: str, element: Any) -> Any:
    """What two elements have in common where the second would take the first one's place."""
    if kind == "env":
        return element.partition("=")[0]
    key = {"deviceNodes": "path", "netDevices": "name", "mounts": "containerPath"}.get(kind)
    return element[key] if key else repr(element)


def _plain(element: Any) -> Any:
    """An element without keys that say nothing: an old library knows less keys, and refuses them empty too."""
    if not isinstance(element, Mapping):
        return element
    return {key: value for key, value in element.items() if value not in ("", [], {})}


def with_edits(spec: Any) -> Any:
    """A vendor's specification, of whatever form, less the devices that have no edit: they count as missing."""
    devices = spec.get("devices") if isinstance(spec, Mapping) else None
    return {**spec, "devices": list(filter(_has_edits, devices))} if isinstance(devices, list) else spec


def _has_edits(device: Any) -> bool:
    """Whether the entry has edits, or is none, which others say."""
    edits = device.get("containerEdits", {}) if isinstance(device, Mapping) else None
    return not isinstance(edits, Mapping) or any(edits.values())


# -- a ceiling


def below(ceiling: str | None, version: str) -> bool:
    """Whether what came with a version of CDI cannot be said under the ceiling."""
    return ceiling is not None and cdi.VERSIONS.index(ceiling) < cdi.VERSIONS.index(version)


def within(edits: Edits, ceiling: str | None, path: str) -> dict[str, Any]:
    """The edits as a version of CDI up to the ceiling can say them; `path` is the file that they come from.

    Raises StepFailed, which no later pass mends, where the container would get another device or mount.
    """
    kept = dict(edits)
    for kind in lost(edits, ceiling):
        del kept[kind]
    if below(ceiling, "1.1.0") and "intelRdt" in kept:
        kept["intelRdt"] = {key: value for key, value in kept["intelRdt"].items() if key not in SINCE_1_1}
    if below(ceiling, "0.5.0"):
        kept["deviceNodes"] = [_node_within(node, path, ceiling) for node in kept.get("deviceNodes", ())]
    if below(ceiling, "0.4.0"):
        kept["mounts"] = [_mount_within(mount, path, ceiling) for mount in kept.get("mounts", ())]
    return {kind: value for kind, value in kept.items() if value}


def lost(edits: Edits, ceiling: str | None) -> tuple[str, ...]:
    """The kinds of edits that a ceiling leaves out whole."""
    since = {"netDevices": "1.1.0", "intelRdt": "0.7.0", "additionalGids": "0.7.0"}
    return tuple(kind for kind in since if edits.get(kind) and below(ceiling, since[kind]))


def _node_within(node: Edits, path: str, ceiling: str | None) -> dict[str, Any]:
    if node.get("hostPath", node["path"]) != node["path"]:
        raise StepFailed(
            f"{path} has the device {node['hostPath']} as {node['path']}, which CDI {ceiling} cannot say: raise "
            "max_cdi_version to 0.5.0",
            retryable=False,
        )
    return {key: value for key, value in node.items() if key != "hostPath"}


def _mount_within(mount: Edits, path: str, ceiling: str | None) -> dict[str, Any]:
    """A bind mount is one by its options whatever its type, or by its type; another cannot be without its type."""
    kind = mount.get("type", "")
    binds = bool(set(mount.get("options", ())) & set(BINDS))
    if not binds and kind not in ("", "none", *BINDS):
        raise StepFailed(
            f"{path} mounts a {kind} on {mount['containerPath']}, which CDI {ceiling} cannot say: raise "
            "max_cdi_version to 0.4.0",
            retryable=False,
        )
    plain = {key: value for key, value in mount.items() if key != "type"}
    if kind in BINDS and not binds:
        plain["options"] = [*plain.get("options", []), kind]
    return plain
