# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a control plane, or a person, assigns: allocations, each with the devices and host resources booked for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field
from .atoms import is_gpu
from .settings import strict

UNIT = "devices"  # the section's name in results, debts and messages
HOLD, KUBERNETES = "BINDING_HOLD", "BINDING_KUBERNETES"
BINDINGS = (HOLD, KUBERNETES)
SLOTS = 48  # of a shared GPU, unless slot_count says otherwise
MOST = 2**63 - 1  # of any number: systemd, the kernel and the names of our files take no larger one


class Device(NamedTuple):
    """A device as it was asked for: its id (see plan.atoms) and its class, "gpu", "gpu.mig" or "gpu.slot"."""

    id: str
    device_class: str = "gpu"


class Limits(NamedTuple):
    """Host resources booked with the devices; None where none are. The cpulists are as they were given."""

    cpus: str | None = None  # a cpulist
    mems: str | None = None  # a list of NUMA nodes
    cpu_millis: int | None = None  # thousandths of one CPU
    memory_bytes: int | None = None
    hugepages_2mi: int | None = None  # pages
    hugepages_1gi: int | None = None  # pages


class Assignment(NamedTuple):
    """One allocation of the section. Its binding and its devices may be ones that cannot be honoured."""

    allocation: str
    binding: str = HOLD
    devices: tuple[Device, ...] = ()
    reservation: str = ""
    limits: Limits | None = None  # None: devices only
    env: tuple[str, ...] = ()  # "KEY=VALUE" lines for the env file


class Instance(NamedTuple):
    """A virtual machine that the control plane runs here."""

    id: str
    memory_bytes: int = 0
    hugepages: bool = False  # its memory is huge pages


class Section(NamedTuple):
    """The whole of what is to be held on this host: what is not named is released."""

    assignments: tuple[Assignment, ...] = ()
    generation: int = 0
    passthrough: Mapping[str, str] = {}  # GPU UUID -> the instance that has it, or is to have it, through VFIO
    instances: tuple[Instance, ...] = ()
    ceiling: str | None = None  # no CDI version above this one is written
    slots: int = SLOTS
    node_id: str = ""
    acknowledge: frozenset[str] = frozenset()  # ids of events that were accepted


OF_LIMITS = (
    Field("cpus", "cpus", (str,)),
    Field("mems", "mems", (str,)),
    Field("cpu_millis", "cpu_millis", (int,)),
    Field("memory_bytes", "memory_bytes", (int,)),
    Field("hugepages_2mi", "hugepages_2mi", (int,)),
    Field("hugepages_1gi", "hugepages_1gi", (int,)),
)
OF_ASSIGNMENT = (
    Field("allocation_id", "allocation_id", (str,)),
    Field("reservation_id", "reservation_id", (str,)),
    Field("binding", "binding", (str,)),
    Field("devices", "devices", (list,), (Field("id", "id", (str,)), Field("device_class", "device_class", (str,)))),
    Field("limits", "limits", (dict,), OF_LIMITS),
    Field("env", "env", (list,)),
    Field("instance_id", "instance_id", (str,)),  # of BINDING_INSTANCE, and not read
)
OF_INSTANCE = (
    Field("id", "id", (str,)),
    Field("memory_bytes", "memory_bytes", (int,)),
    Field("hugepages", "hugepages", (bool,)),
)
FIELDS = (
    Field("assignments", "assignments", (list,), OF_ASSIGNMENT),
    Field("generation", "generation", (int,)),
    Field("passthrough", "passthrough", (list,), (Field("gpu", "gpu", (str,)), Field("instance", "instance", (str,)))),
    Field("instances", "instances", (list,), OF_INSTANCE),
    Field("max_cdi_version", "max_cdi_version", (str,)),
    Field("slot_count", "slot_count", (int,)),
    Field("acknowledge", "acknowledge", (list,)),
    Field("node_id", "node_id", (str,)),
)
REQUIRED = {
    "assignments": ("allocation_id", "binding", "devices"),
    "passthrough": ("gpu", "instance"),
    "instances": ("id",),
}
ALLOCATION = re.compile(r"[A-Za-z0-9_]{1,80}")
# Keys of the env file that are ours; the last is the edit of a device that NVIDIA's specification has none for.
OUR_KEYS = frozenset(
    (
        "BCD_ALLOCATION_ID",
        "BCD_CGROUP_PARENT",
        "CUDA_MPS_PIPE_DIRECTORY",
        "BCD_RESERVATION_ID",
        "NVIDIA_VISIBLE_DEVICES",
        "BCD_DEVICE_ID",
    )
)


def check(given: Mapping[str, Any]) -> Section:
    """The section from its settings in wire form; raises Refused, naming all that is wrong, for bad options.

    A binding, a class or a device that this host cannot honour is none of them: that is the assignment's failure. What
    an env line holds is told to nobody: it may be a secret.
    """
    env_faults = list(_wrong_envs(given))
    if env_faults:
        raise _refused(env_faults)
    wire = strict(UNIT, FIELDS, given)
    faults = [*_lacking(wire), *_wrong_numbers(wire), *_wrong_texts(wire)]
    if not faults:
        faults = [*_twice(wire), *_no_gpus(wire), *_wrong_version(wire)]
    if faults:
        raise _refused(faults)
    return Section(
        tuple(map(_assignment, wire["assignments"])),
        wire.get("generation", 0),
        {entry["gpu"]: entry["instance"] for entry in wire.get("passthrough", [])},
        tuple(Instance(one["id"], one.get("memory_bytes", 0), one.get("hugepages", False)) for one in _all(wire)),
        wire.get("max_cdi_version"),
        wire.get("slot_count", SLOTS),
        wire.get("node_id", ""),
        frozenset(wire.get("acknowledge", [])),
    )


def _no_gpus(wire: Mapping[str, Any]) -> Iterator[str]:
    for at, one in enumerate(wire.get("passthrough", ())):
        if not is_gpu(one["gpu"]):
            yield f"passthrough[{at}].gpu is {one['gpu']!r}, and takes a GPU's UUID"


def _all(wire: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = wire.get("instances", [])
    return found


def _refused(faults: list[str]) -> Refused:
    return Refused(f"{UNIT}: {'; '.join(faults)}: correct the options")


def _assignment(given: Mapping[str, Any]) -> Assignment:
    limits = given.get("limits")
    return Assignment(
        given["allocation_id"],
        given["binding"],
        tuple(Device(one["id"], one.get("device_class") or "gpu") for one in given["devices"]),
        given.get("reservation_id", ""),
        None if limits is None else Limits(**{key: value or None for key, value in limits.items()}),
        tuple(given.get("env", ())),
    )


def _wrong_envs(given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the env of the assignments; their other parts may be of any type still."""
    assignments = given.get("assignments")
    for at, one in enumerate(assignments if isinstance(assignments, list) else ()):
        env = one.get("env", []) if isinstance(one, Mapping) else []
        if not isinstance(env, list):
            yield f"assignments[{at}].env is no list of KEY=VALUE"
            continue
        for number, line in enumerate(env):
            fault = _wrong_line(line)
            if fault:
                yield f"assignments[{at}].env[{number}] {fault}"


def _wrong_line(line: Any) -> str:
    if not isinstance(line, str):
        return "is no string: put it in quotes"
    if line.splitlines() != [line] or "\0" in line:
        return "is not one line"
    if any("\ud800" <= character <= "\udfff" for character in line):
        return "has half a character, which no file in UTF-8 can hold"
    key, equals, _value = line.partition("=")
    if not equals or not key.strip():
        return "is no KEY=VALUE"
    ours = sorted(OUR_KEYS & set(key.split()))
    return f"sets {ours[0]}, which is ours to set" if ours else ""


def _lacking(wire: Mapping[str, Any]) -> Iterator[str]:
    if "assignments" not in wire:
        yield "assignments is not given: give the whole list, [] to release all"
    for field, keys in REQUIRED.items():
        for at, one in enumerate(wire.get(field, ())):
            yield from (f"{field}[{at}] has no {key}" for key in keys if key not in one)
    for at, one in enumerate(wire.get("assignments", ())):
        if one.get("devices") == []:
            yield f"assignments[{at}] has no devices: name at least one"
        yield from (f"assignments[{at}].devices[{n}] has no id" for n, d in enumerate(_of(one)) if "id" not in d)


def _of(assignment: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = assignment.get("devices", [])
    return found


def _wrong_numbers(wire: Mapping[str, Any]) -> Iterator[str]:
    named = [("generation", wire.get("generation", 0))]
    for at, one in enumerate(wire.get("assignments", ())):
        limits = one.get("limits", {}).items()
        named += [(f"assignments[{at}].limits.{key}", value) for key, value in limits if isinstance(value, int)]
    named += [(f"instances[{at}].memory_bytes", one.get("memory_bytes", 0)) for at, one in enumerate(_all(wire))]
    yield from (f"{name} is {value}, and cannot be less than 0" for name, value in named if -MOST <= value < 0)
    slots = wire.get("slot_count", SLOTS)
    named.append(("slot_count", slots))
    yield from (f"{name} has more than 63 bits" for name, value in named if abs(value) > MOST)
    if -MOST <= slots < 1:
        yield f"slot_count is {wire['slot_count']}: a GPU has at least 1 slot"


def _wrong_texts(wire: Mapping[str, Any]) -> Iterator[str]:
    """Names that cannot be written into files as they are, and ids of allocations that are none."""
    for at, one in enumerate(wire.get("assignments", ())):
        here = f"assignments[{at}]"
        if "allocation_id" in one and not ALLOCATION.fullmatch(one["allocation_id"]):
            yield f"{here}.allocation_id {one['allocation_id']!r} is none (letters, digits and _, at most 80)"
        yield from _unprintable(here, {key: one.get(key, "") for key in ("reservation_id", "binding")})
        for number, device in enumerate(_of(one)):
            yield from _unprintable(f"{here}.devices[{number}]", device)
    for field in ("passthrough", "instances"):
        for at, one in enumerate(wire.get(field, ())):
            yield from _unprintable(f"{field}[{at}]", one)
    yield from _unprintable("", {"node_id": wire.get("node_id", "")})
    for at, event in enumerate(wire.get("acknowledge", ())):
        if not isinstance(event, str):
            yield f"acknowledge[{at}] is {event!r}, and takes the id of an event"


def _unprintable(where: str, texts: Mapping[str, Any]) -> Iterator[str]:
    for key, text in texts.items():
        if isinstance(text, str) and not text.isprintable():
            yield f"{where}{'.' if where else ''}{key} {text!r} has characters that are not printable"


def _twice(wire: Mapping[str, Any]) -> Iterator[str]:
    for name in _repeated(one["allocation_id"] for one in wire["assignments"]):
        yield f"the allocation {name} is there twice"
    for gpu in _repeated(one["gpu"] for one in wire.get("passthrough", ())):
        yield f"passthrough names {gpu} twice"


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return list(twice)


def _wrong_version(wire: Mapping[str, Any]) -> Iterator[str]:
    from .cdi import VERSIONS

    ceiling = wire.get("max_cdi_version")
    if ceiling is not None and ceiling not in VERSIONS:
        yield f"max_cdi_version {ceiling!r} is none of {', '.join(VERSIONS)}"
