# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI specifications as runtimes find them: which devices they define, and whether what they name is there."""

from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple

from ..core.errors import Refused, Unreadable
from ..core.host import Host
from ..plan import cdi

FOLDER = "/etc/cdi"
ENDINGS = (".json", ".yaml", ".yml")
HOLDS = "bcd-"  # our own specifications begin so, and have a kind of ours


class VendorSpec(NamedTuple):
    """A file that describes devices of kind nvidia.com/gpu; `spec` is None where it cannot be read, for `fault`."""

    path: str
    spec: Any
    fault: str = ""


def runtime_folder(host: Host) -> str:
    """The folder of specifications that do not outlast a boot, by its path without links: root writes through none."""
    return "/run/cdi" if (host.link("/var/run") or "").rstrip("/").endswith("run") else "/var/run/cdi"


def vendor_specs(host: Host, prepare: Callable[[Any], Any] | None = None) -> tuple[VendorSpec, ...]:
    """NVIDIA's specifications in both folders, JSON and nvidia-ctk's YAML; a later file outranks those before it.

    `prepare` makes of what a file says what is then checked.
    """
    found = []
    for folder in (FOLDER, runtime_folder(host)):
        for name in host.names(folder):
            if name.endswith(ENDINGS) and not name.startswith(HOLDS):
                spec = _vendor_spec(f"{folder}/{name}", _text(host, f"{folder}/{name}"), prepare)
                found += [spec] if spec else []
    return tuple(found)


def _text(host: Host, path: str) -> str:
    """The text of a file; none of a folder, such as Docker makes of a mount that is missing: runtimes pass it over."""
    try:
        return host.read(path) or ""
    except Unreadable:
        if host.exists(f"{path}/."):
            return ""
        raise


def _vendor_spec(path: str, text: str, prepare: Callable[[Any], Any] | None) -> VendorSpec | None:
    """The file's specification; None where it is of another kind. One that cannot be read is told by its words."""
    if cdi.VENDOR_KIND not in text:
        return None
    try:
        spec = _parsed(path, text)
    except Refused as fault:
        return VendorSpec(path, None, fault.message)
    if not isinstance(spec, dict):
        return VendorSpec(path, None, "it is no mapping")
    if spec.get("kind") != cdi.VENDOR_KIND:
        return None
    spec = prepare(spec) if prepare else spec
    faults = cdi.faults(spec)
    return VendorSpec(path, None if faults else spec, "; ".join(faults[:3]))


def _parsed(path: str, text: str) -> Any:
    if path.endswith(".json"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as fault:
            raise Refused(f"{path}: {fault}") from None
    from ..plan.block_yaml import parse

    return parse(text, path)


def gone(host: Host, spec: Any) -> tuple[str, ...]:
    """The paths that a sound specification names and this host lacks."""
    return tuple(path for path in cdi.host_paths(spec) if not host.exists(path))


def device_nodes(host: Host) -> tuple[str, ...]:
    """NVIDIA's device nodes, those of MIG devices among them."""
    nodes = [f"/dev/{name}" for name in host.names("/dev") if name.startswith("nvidia")]
    return tuple(
        sorted({*nodes, *(f"{node}/{name}" for node in nodes if "-caps" in node for name in host.names(node))})
    )
