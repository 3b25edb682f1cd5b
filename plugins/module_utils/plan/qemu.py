# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command line of a QEMU process says of its virtual machine: names, memory, devices through VFIO.

Options are those of QEMU's manual, as an administrator types them ("-device vfio-pci,host=17:00.0") and as libvirt
writes them, in JSON since version 7 ('-device {"driver":"vfio-pci","host":"0000:17:00.0"}').
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

# The system emulators: RHEL's is qemu-kvm, Debian's and Proxmox's other name for it kvm.
PROGRAM = re.compile(r"qemu-system-.+|qemu-kvm|kvm")
DEFAULT = 128 * 1024 * 1024  # bytes of a machine that is given no -m
SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE]?)B?", re.IGNORECASE | re.ASCII)
SHIFT = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
HUGE = "huge pages"
ON = (True, "on", "true", "yes", "y")


class Machine(NamedTuple):
    """A virtual machine by its command line.

    `memory` is in bytes, None where the line does not tell. `places` are where its parts lie: a file, HUGE for huge
    pages without one, "" for ordinary memory. `host` and `sysfs` name its devices through VFIO.
    """

    names: tuple[str, ...]
    memory: int | None = None
    places: tuple[str, ...] = ("",)
    host: tuple[str, ...] = ()  # PCI addresses, "17:00.0" or "0000:17:00.0"
    sysfs: tuple[str, ...] = ()  # "/sys/bus/mdev/devices/<uuid>"


class _Backend(NamedTuple):
    """A memory-backend-* object."""

    id: str
    size: int | None  # bytes
    place: str = ""  # as Machine has it


def is_qemu(program: str) -> bool:
    """Whether a program of this name, without its directory, runs virtual machines with QEMU."""
    return PROGRAM.fullmatch(program) is not None


def machine(argv: tuple[str, ...]) -> Machine | None:
    """What a command line says; None for a process that has no machine, which libvirt starts to learn what QEMU can."""
    given = _options(argv)
    if "none" in [_pairs(text, "type").get("type") for text in given.get("machine", ()) + given.get("M", ())]:
        return None
    backends = tuple(filter(None, map(_backend, given.get("object", ()))))
    devices = [_pairs(text, "driver") for text in given.get("device", ())]
    plugged = {str(device["memdev"]) for device in devices if "memdev" in device}
    vfio = [device for device in devices if str(device.get("driver", "")).startswith("vfio-pci")]
    return Machine(
        _names(given),
        *_memory(given, backends, plugged),
        host=tuple(str(device["host"]) for device in vfio if device.get("host")),
        sysfs=tuple(str(device["sysfsdev"]) for device in vfio if device.get("sysfsdev")),
    )


def _options(argv: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The values of each option by its name, in order: ("-m", "4G") is {"m": ("4G",)}."""
    found: dict[str, tuple[str, ...]] = {}
    for option, value in zip(argv[1:], (*argv[2:], "")):
        if option.startswith("-"):
            key = option[2:] if option.startswith("--") else option[1:]
            found[key] = (*found.get(key, ()), value)
    return found


def _pairs(text: str, first: str) -> Mapping[str, Any]:
    """An option's value as a mapping; `first` is the key of a first word without one. What is neither form is empty."""
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}
    pairs = {}
    for at, part in enumerate(_split(text)):
        key, equals, value = part.partition("=")
        if equals:
            pairs[key] = value
        elif at == 0:
            pairs[first] = part
        else:
            pairs[part] = "on"  # a bare word is a switch
    return pairs


def _split(text: str) -> list[str]:
    """The parts between commas; a comma that belongs to a value is doubled."""
    marked = text.replace(",,", "\0")
    return [part.replace("\0", ",") for part in marked.split(",")]


def _names(given: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The guest's name and its UUID, as far as they are given."""
    names = [str(_pairs(text, "guest").get("guest", "")) for text in given.get("name", ())[-1:]]
    return tuple(name for name in (*names, *given.get("uuid", ())[-1:]) if name)


def _memory(
    given: Mapping[str, tuple[str, ...]], backends: tuple[_Backend, ...], plugged: set[str]
) -> tuple[int | None, tuple[str, ...]]:
    """Bytes of the machine, None where they cannot be made out, and where they lie.

    What -m says, or what its NUMA nodes have where that is more, and beside it the DIMMs: the backends of devices.
    """
    said: int | None = DEFAULT
    for text in given.get("m", ()):
        word = _pairs(text, "size").get("size")
        said = _size(word, "M") if word is not None else said
    sizes = [backend.size for backend in backends]
    if said is None or None in sizes or "readconfig" in given:
        return None, ("",)
    nodes = sum(backend.size or 0 for backend in backends if backend.id not in plugged)
    dimms = sum(backend.size or 0 for backend in backends if backend.id in plugged)
    places = [backend.place for backend in backends]
    if nodes < said:  # the rest has no backend of its own
        places += [given.get("mem-path", ("",))[-1]]
    return max(said, nodes) + dimms, tuple(places)


def _backend(text: str) -> _Backend | None:
    """The memory of an -object; None for another kind of object."""
    found = _pairs(text, "qom-type")
    kind = str(found.get("qom-type", ""))
    if not kind.startswith("memory-backend-"):
        return None
    place = str(found.get("mem-path", "")) if kind == "memory-backend-file" else ""
    if kind == "memory-backend-memfd" and found.get("hugetlb") in ON:
        place = HUGE
    return _Backend(str(found.get("id", "")), _size(found.get("size"), ""), place)


def _size(given: object, unit: str) -> int | None:
    """Bytes of a size, a number or "4G"; `unit` is that of a number in a text without one. None: it is none."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    found = SIZE.fullmatch(given) if isinstance(given, str) else None
    if not found:
        return None
    scale = 1 << SHIFT[(found.group(2) or unit).upper()]
    return int(float(found.group(1)) * scale) if "." in found.group(1) else int(found.group(1)) * scale
