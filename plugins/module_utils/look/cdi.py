# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's CDI specifications as runtimes find them: which devices they define, and whether what they name is there."""

from __future__ import annotations

import json

from ..core.errors import Refused
from ..plan import cdi
from . import cdi_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, NamedTuple

    from ..core.host import Host
else:
    from ..core.named import NamedTuple


class VendorSpec(NamedTuple):
    """A file that describes devices of kind nvidia.com/gpu; `spec` is None where it cannot be read, for `fault`."""

    path: str
    spec: Any
    fault: str = ""


def vendor_specs(host: Host, prepare: Callable[[Any], Any] | None = None) -> tuple[VendorSpec, ...]:
    """NVIDIA's specifications in both folders, JSON and nvidia-ctk's YAML; a later file outranks those before it.

    `prepare` makes of what a file says what is then checked.
    """
    found = (_vendor_spec(path, text, prepare) for path, text in host.sight(cdi_files.vendor_texts))
    return tuple(spec for spec in found if spec is not None)


def _vendor_spec(path: str, text: str, prepare: Callable[[Any], Any] | None) -> VendorSpec | None:
    """The file's specification; None where it is of another kind. One that cannot be read is told by its words."""
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


def broken(host: Host, known: tuple[VendorSpec, ...]) -> tuple[tuple[str, str], ...]:
    """Files in the folders that are no specification of any kind, each with why; `known` are told of elsewhere."""
    found = host.sight(cdi_files.broken, [spec.path for spec in known])
    return tuple((path, fault) for path, fault in found)


def gone(host: Host, spec: Any) -> tuple[str, ...]:
    """The paths that a sound specification names and this host lacks."""
    return tuple(host.sight(cdi_files.lacking, list(cdi.host_paths(spec))))
