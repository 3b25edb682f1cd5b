# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendor's CDI specification: made by nvidia-ctk, checked whole, then put in place of the old one.

It describes the driver, the GPUs and MIG devices, the toolkit and the device nodes of one moment. A digest of these is
kept beside it, and another digest, or a path in it that is gone, makes it anew. The old one stays until then.
"""

from __future__ import annotations

import json

from ..core.errors import NotReady
from ..core.state import STATE
from . import cdi
from .container_toolkit_config import OUTPUT
from .unit_names import CONTAINER_TOOLKIT as UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    from ..core.plan import Past, Todo
    from ..core.seen import File
    from .gpu_listed import Listed
    from .nvidia_driver_version import Loaded
else:
    from ..core.named import NamedTuple

STAMP = f"{STATE}/cdi-nvidia.stamp"
VERSION = 1  # of the stamp


class Found(NamedTuple):
    """A specification of kind nvidia.com/gpu that a runtime reads. `fault`: why it is none, "" for a sound one."""

    path: str
    devices: tuple[str, ...] = ()
    fault: str = ""


class Described(NamedTuple):
    """What the specification depends on, and what is there of it.

    `listing` is the text of nvidia-smi -L, and `gpus` what it lists; `toolkit` is the text of nvidia-ctk --version,
    `nodes` are device nodes and sockets, `modes` the GPUs' MIG modes: one in MIG mode without instances is listed, and
    is no device. `gone` are the paths that our file names and the host lacks. `refresh`: nvidia-cdi-refresh is
    installed, with `environment` as its environment file; `runtime_folder` is where it writes unless it is steered.
    `broken` are files of others that are no specification of any kind, each with why.
    """

    driver: Loaded | None
    listing: str
    gpus: tuple[Listed, ...]
    toolkit: str
    nodes: tuple[str, ...]
    modes: tuple[str, ...]
    file: File | None
    gone: tuple[str, ...]
    stamp: File | None
    found: tuple[Found, ...]
    refresh: bool
    environment: str
    runtime_folder: str = "/run/cdi"
    broken: tuple[tuple[str, str], ...] = ()


def plan(todo: Todo, now: Described, past: Past) -> str:
    """Plan a new specification where the old one is none, or describes another state of the host.

    Returns the cdiVersion of the one that is then there, "" where it was said why there is none.
    """
    if now.driver is None:
        raise NotReady(
            f"{UNIT}: no NVIDIA driver is loaded: {OUTPUT}, which describes what it brings, is made once it is"
        )
    stamp = json.dumps({"digest": digest(now), "version": VERSION}) + "\n"
    spec = read_file(now.file)
    is_due = not _describes(spec, now, stamp)
    if is_due:
        from .container_toolkit_generate import generate

        spec = generate(todo, now, past)
        if spec is None:
            return ""
    others = tuple(found for found in now.found if found.path != OUTPUT)
    if others:
        from .container_toolkit_rivals import refuse_twice

        refuse_twice(others, spec)
    if is_due:
        from .container_toolkit_generate import put

        put(todo, now, spec, stamp)
    if others:
        from .container_toolkit_rivals import plan as plan_rivals

        plan_rivals(todo, now, others)
    for path, fault in now.broken:
        todo.note(f"{path} is no CDI specification ({fault}), and no runtime has a device by it: mend or remove it")
    return str(spec["cdiVersion"])


def digest(now: Described) -> str:
    """Of what the specification describes: driver, devices, MIG modes, toolkit, device nodes."""
    import hashlib

    version = now.driver.version if now.driver else ""
    whole = json.dumps([version, now.listing, now.toolkit, list(now.nodes), list(now.modes)])
    return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()


def _describes(spec: Any, now: Described, stamp: str) -> bool:
    """Whether the file there is sound and describes the host as it is."""
    if spec is None or cdi.faults(spec) or now.gone or unnamed(spec, now):
        return False
    return now.stamp is not None and now.stamp.text == stamp


def read_file(file: File | None) -> Any:
    """Our specification in its file, where it is as we keep it; None else."""
    if file is None or not file.regular or file.uid != 0 or file.mode != 0o644:
        return None
    try:
        spec = json.loads(file.text)
    except (ValueError, RecursionError):
        return None
    return spec if isinstance(spec, dict) and spec.get("kind") == cdi.VENDOR_KIND else None


def unnamed(spec: cdi.Spec, now: Described) -> tuple[str, ...]:
    """MIG devices that nvidia-smi lists and the specification does not name.

    UUIDs of R450 and R460, with slashes, are no names of CDI.
    """
    names = set(cdi.device_names(spec))
    listed = (device.uuid for gpu in now.gpus for device in gpu.devices)
    return tuple(uuid for uuid in listed if uuid not in names and "/" not in uuid)
