# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CDI specification and the env file of a hold: what a workload manager hands to a container, and what they tell.

A plain hold carries the vendor's edits, so that `bcd.dev/gpu=<name>` is all that a container needs. A Kubernetes hold
carries none: a pod may get a part of it, and the device plugin adds what it needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..core.errors import StepFailed
from . import cdi, slices
from .assignment import HOLD, KUBERNETES, OUR_KEYS, Device, Limits
from .atoms import is_slot
from .cdi_rules import minimum_version
from .device_atoms import GPU, MIG, SLOT, Resolved
from .devices_seen import Held, Vendor
from .gpu_sharing_service import PIPE
from .hold_edits import MAKE, Edits, Source, below, commons, lost, merged, sources, within, without
from .holds import CDI, DEVICE_ID, EVERY, KIND, spec_devices

ENV_FILES = "/run/bcd/allocations"
ALLOCATION_ID, RESERVATION_ID = "bcd.dev/allocation-id", "bcd.dev/reservation-id"  # annotations, as are these
GENERATION, CGROUP_PARENT, BINDING = "bcd.dev/generation", "bcd.dev/cgroup-parent", "bcd.dev/binding"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NOTHING = "void"  # what the NVIDIA runtime takes for no device: images come with "all"
OF_DEVICE = "BCD_DEVICE_ID"
NUMBER = re.compile(r"[0-9]{1,20}")  # a generation
MPS_MOUNTS = tuple(
    {"hostPath": path, "containerPath": path, "options": ["rw", "nosuid", "nodev", "bind"]}
    for path in (PIPE, "/dev/shm")  # noqa: S108 - the client and the daemon share memory there
)
NO_VENDOR = (
    f"no CDI specification of {cdi.VENDOR_KIND} is on this host: holds have environment variables only, nothing to a "
    "runtime in CDI mode: configure container_toolkit"
)


def device_name(atom: str) -> str:
    """The device's name in CDI, which has no slash: GPU-..._gi1_ci0."""
    return atom.replace("/", "_")


def spec_path(allocation: str) -> str:
    """The hold's CDI specification."""
    return f"{CDI}/bcd-{allocation}.json"


def env_path(allocation: str) -> str:
    """The hold's env file."""
    return f"{ENV_FILES}/{allocation}.env"


def cgroup_parent(held: Held) -> str:
    """The slice that a hold's containers belong in, "" for a hold without one: the kubelet has slices of its own."""
    sliced = held.limits is not None and held.binding != KUBERNETES
    return slices.name(held.allocation) if sliced else ""


# -- the specification


def render(
    held: Held, resolved: Sequence[Resolved], vendors: Sequence[Vendor], mps: bool, wsl: bool, ceiling: str | None
) -> str:
    """The text of the hold's CDI specification, of the lowest version that says it; `resolved` are its devices.

    Raises StepFailed: no vendor's file describes a device, one that would cannot be read, or the result is none that a
    runtime takes (all retryable); or the ceiling does not let a device or mount be said, which no later pass mends.
    """
    found = _sources(held, resolved, vendors, wsl)
    files = ", ".join(dict.fromkeys(entry.path for entry in found.values()))
    ours = {"env": _environment(held, [each.visible for each in resolved], mps), "mounts": _mounts(held, mps)}
    spec: dict[str, Any] = {"cdiVersion": cdi.VERSIONS[-1], "kind": KIND, "annotations": _annotations(held)}
    spec["devices"] = []
    for each in resolved:
        entry = found.get(each.visible)
        edits = within(merged(without(entry.device, OUR_KEYS)), ceiling, entry.path) if entry else {}
        spec["devices"].append(_device(each.device.id, edits))
    spec["containerEdits"] = within(merged(ours, *commons(found, vendors)), ceiling, files)
    if below(ceiling, "0.6.0"):
        del spec["annotations"]
        for device in spec["devices"]:
            del device["annotations"]
    faults = cdi.faults(spec)
    if faults:
        raise StepFailed(
            f"no runtime would take {spec_path(held.allocation)} with what {files or 'the assignment'} says "
            f"({'; '.join(faults[:3])}): correct it"
        )
    spec["cdiVersion"] = minimum_version(spec)
    return json.dumps(spec, indent=2) + "\n"


def _sources(held: Held, resolved: Sequence[Resolved], vendors: Sequence[Vendor], wsl: bool) -> dict[str, Source]:
    """The vendor's entries for the hold by UUID; none for a Kubernetes hold, and where no vendor's file is.

    A hold that has the vendor's edits keeps them: what nvidia-cdi-refresh writes to /run is not there early in a boot.
    """
    if held.binding == KUBERNETES:
        return {}
    if not vendors:
        if _has_edits(held.spec_text or ""):
            raise StepFailed(
                f"no CDI specification of {cdi.VENDOR_KIND} is on this host now: {spec_path(held.allocation)} stays as "
                f"it was made of one: {MAKE}"
            )
        return {}
    return sources((each.visible for each in resolved), vendors, wsl)


def _has_edits(text: str) -> bool:
    """Whether a specification of ours has edits of a vendor's: a device has more than its id."""
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError):
        return False
    devices = spec.get("devices") if isinstance(spec, dict) else None
    listed = devices if isinstance(devices, list) else ()
    every = [device.get("containerEdits") for device in listed if isinstance(device, dict)]
    return any(edits and set(edits) != {"env"} for edits in every if isinstance(edits, dict))


def _annotations(held: Held) -> dict[str, str]:
    found = {
        ALLOCATION_ID: held.allocation,
        RESERVATION_ID: held.reservation,
        GENERATION: str(held.generation),
        CGROUP_PARENT: cgroup_parent(held),
        BINDING: "kubernetes" if held.binding == KUBERNETES else "",
    }
    return {name: value for name, value in found.items() if value}


def _device(atom: str, edits: Edits) -> dict[str, Any]:
    """A device's entry. One without an edit is refused by runtimes, so that it has at least its id."""
    return {
        "name": device_name(atom),
        "annotations": {DEVICE_ID: atom},
        "containerEdits": edits or {"env": [f"{OF_DEVICE}={atom}"]},
    }


def _mps(held: Held, mps: bool) -> bool:
    """Whether its containers are clients of the MPS daemon, which serves slots."""
    return mps and any(is_slot(device.id) for device in held.devices)


def _mounts(held: Held, mps: bool) -> Sequence[Edits]:
    return MPS_MOUNTS if _mps(held, mps) else ()


def _environment(held: Held, visible: Sequence[str], mps: bool) -> list[str]:
    """The variables of the specification, which a Kubernetes hold's pods get whatever part of it they have."""
    values = {
        "BCD_ALLOCATION_ID": held.allocation,
        "BCD_CGROUP_PARENT": cgroup_parent(held),
        "CUDA_MPS_PIPE_DIRECTORY": PIPE if _mps(held, mps) else "",
        VISIBLE: "" if held.binding == KUBERNETES else ",".join(dict.fromkeys(visible)),
    }
    return [f"{name}={value}" for name, value in values.items() if value]


# -- the env file


def env_file(held: Held, visible: Sequence[str], mps: bool) -> str:
    """The text of the hold's env file; `visible` are the UUIDs that the driver knows its devices by."""
    values = {
        "BCD_ALLOCATION_ID": held.allocation,
        "BCD_CGROUP_PARENT": cgroup_parent(held),
        "CUDA_MPS_PIPE_DIRECTORY": PIPE if _mps(held, mps) else "",
        "BCD_RESERVATION_ID": held.reservation,
        VISIBLE: ",".join(dict.fromkeys(visible)) or NOTHING,
    }
    lines = [f"{name}={value}" for name, value in values.items() if value]
    return "".join(f"{line}\n" for line in (*lines, *held.env))


def env_in(text: str) -> tuple[str, ...]:
    """The assignment's lines in an env file of ours."""
    return tuple(line for line in text.split("\n") if line and line.partition("=")[0] not in OUR_KEYS)


# -- what the host lacks, and what is left out


def lacking(vendors: Sequence[Vendor], resolved: Sequence[Resolved], wsl: bool = False) -> tuple[str, ...]:
    """What a plain hold of these devices needs and this host lacks: "<path>, which <vendor's file> names"; sorted."""
    if not any(vendor.gone for vendor in vendors):
        return ()
    found = sources((each.visible for each in resolved), vendors, wsl)
    gone = {path for vendor in vendors for path in vendor.gone}
    missing: set[tuple[str, str]] = set()
    for entry in found.values():
        devices = [{"containerEdits": entry.device}]
        needed = cdi.host_paths({"containerEdits": entry.common, "devices": devices})
        missing.update((path, entry.path) for path in needed if path in gone)
    return tuple(f"{path}, which {file} names" for path, file in sorted(missing))


def require_paths(held: Held, resolved: Sequence[Resolved], vendors: Sequence[Vendor], wsl: bool) -> None:
    """Raise StepFailed, retryable, where this host lacks what the hold's containers would be given."""
    missing = lacking(vendors, resolved, wsl) if held.binding != KUBERNETES and vendors else ()
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise StepFailed(
            f"this host lacks {missing[0]}{more}: a container of {held.allocation} would not start: let "
            "container_toolkit make the file again"
        )


def notes(
    held: Held, resolved: Sequence[Resolved], vendors: Sequence[Vendor], wsl: bool, ceiling: str | None
) -> tuple[str, ...]:
    """What an operator is told of the hold's specification, in sentences that are the same for holds alike."""
    if held.binding == KUBERNETES:
        return ()
    if not vendors:
        return (NO_VENDOR,)
    if ceiling is None:
        return ()
    left = [
        (kind, entry.path)
        for entry in _sources(held, resolved, vendors, wsl).values()
        for kind in (*lost(entry.device, ceiling), *lost(entry.common, ceiling))
    ]
    return tuple(
        f"max_cdi_version {ceiling} leaves {kind} of {path} out of the holds: it cannot say it"
        for kind, path in dict.fromkeys(left)
    )


# -- what a specification tells of its hold


def from_spec(path: str, text: str, allocation: str) -> Held:
    """The hold that a specification of ours at `path` describes, as far as it can say.

    It says that there are limits, not which; nothing of the env file's own lines; and under a ceiling that has no
    annotations, no reservation and no generation. A text that is none gives a hold with a fault.
    """
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError):
        return Held(allocation, spec_text=text, fault=f"{path} is no JSON, and {EVERY}")
    ids = spec_devices(spec)
    if not ids:
        return Held(allocation, spec_text=text, fault=f"{path} names no device that is known, and {EVERY}")
    annotations = _texts(spec.get("annotations"))
    variables = _variables(spec)
    kubernetes = annotations.get(BINDING) == "kubernetes" if annotations else VISIBLE not in variables
    sliced = CGROUP_PARENT in annotations or "BCD_CGROUP_PARENT" in variables
    generation = annotations.get(GENERATION, "")
    return Held(
        allocation,
        tuple(Device(atom, _class(atom)) for atom in dict.fromkeys(ids)),
        binding=KUBERNETES if kubernetes else HOLD,
        reservation=annotations.get(RESERVATION_ID, ""),
        generation=int(generation) if NUMBER.fullmatch(generation) else 0,
        limits=Limits() if sliced else None,
        spec_text=text,
    )


def visible_in(text: str) -> tuple[str, ...]:
    """The UUIDs that a specification of ours gives the driver; none where it does not say, as for Kubernetes."""
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    named = _variables(spec).get(VISIBLE, "") if isinstance(spec, dict) else ""
    return tuple(uuid for uuid in named.split(",") if uuid)


def _class(atom: str) -> str:
    if is_slot(atom):
        return SLOT
    return MIG if "/" in atom or atom.startswith("MIG-") else GPU


def _texts(given: Any) -> dict[str, str]:
    return {key: value for key, value in given.items() if isinstance(value, str)} if isinstance(given, dict) else {}


def _variables(spec: dict[str, Any]) -> dict[str, str]:
    """The variables that all devices of a specification set, of whatever form it is."""
    edits = spec.get("containerEdits")
    lines = edits.get("env") if isinstance(edits, dict) else None
    pairs = [line.partition("=") for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    return {name: value for name, _equals, value in pairs}
