# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods have which devices, by the kubelet's own accounts: what its pod-resources API lists, and two checkpoints.

The list has no plain init containers, and is empty after a restart until the API server answers; the checkpoint has
both, and entries of pods that are gone. Each is a part of the answer only (see look.pods).
"""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

METHOD = "/v1.PodResourcesLister/List"


class Use(NamedTuple):
    """A device that a pod has, by every name that the account has of it.

    `pod` names it for a person, "pod team-a/train-0"; `uid` is the pod's, "" where the account does not say.
    """

    names: tuple[str, ...]
    pod: str
    uid: str = ""
    driver: str = ""  # of a dynamic resource: its driver and its device's name there, which need be no id
    device: str = ""


# -- the pod-resources API, v1: protocol buffers


def listed(message: bytes) -> tuple[Use, ...]:
    """Every device of the answer to List; raises ValueError for what is none.

    Numbers of fields: PodResources name 1, namespace 2, containers 3; ContainerResources devices 2,
    dynamic_resources 5; ContainerDevices device_ids 2; DynamicResource claim_resources 4.
    """
    found: list[Use] = []
    for pod in _messages(message, 1):
        given = _by_number(pod)
        name = f"{_text(given, 2)}/{_text(given, 1)}"
        for container in given.get(3, ()):
            parts = _by_number(container)
            for devices in parts.get(2, ()):
                found += [Use((_utf8(device),), f"pod {name}") for device in _messages(devices, 2)]
            for dynamic in parts.get(5, ()):
                found += [_claimed(claim, f"pod {name}") for claim in _messages(dynamic, 4)]
    return tuple(found)


def _claimed(message: bytes, pod: str) -> Use:
    """A ClaimResource: cdi_devices 1 (CDIDevice: name 1), driver_name 2, pool_name 3, device_name 4."""
    given = _by_number(message)
    names = [_text(_by_number(device), 1) for device in given.get(1, ())]
    return dynamic(_text(given, 2), _text(given, 3), _text(given, 4), names, pod)


def dynamic(driver: str, pool: str, device: str, cdi: list[str], pod: str, uid: str = "") -> Use:
    """The use of a dynamic resource."""
    return Use((f"{driver}/{pool}/{device}", *cdi, device), pod, uid, driver, device)


def _by_number(message: bytes) -> dict[int, list[bytes]]:
    """The length-delimited fields of a message by their number."""
    found: dict[int, list[bytes]] = {}
    for number, value in _fields(message):
        found.setdefault(number, []).append(value)
    return found


def _messages(message: bytes, wanted: int) -> Iterator[bytes]:
    return (value for number, value in _fields(message) if number == wanted)


def _text(given: dict[int, list[bytes]], number: int) -> str:
    return _utf8(given[number][-1]) if number in given else ""


def _utf8(value: bytes) -> str:
    return value.decode("utf-8")  # UnicodeDecodeError is a ValueError


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of the length-delimited fields; numbers of other kinds are passed over."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            at = _varint(message, at)[1]
            continue
        if kind not in (1, 2, 5) or not key >> 3:
            raise ValueError("no protocol buffer")
        size, at = _varint(message, at) if kind == 2 else (8 if kind == 1 else 4, at)
        if at + size > end:
            raise ValueError("a protocol buffer that is cut off")
        if kind == 2:
            yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 70:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("a protocol buffer that is cut off")


# -- checkpoints


def checkpoint(text: str) -> tuple[Use, ...]:
    """Every device of kubelet_internal_checkpoint, of pods that are gone too; raises ValueError for what is none.

    Its checksum is of Go's own and is not checked. Up to Kubernetes 1.19 the devices are a plain list.
    """
    return _made_out(_entries, json.loads(text))


def claims(text: str) -> tuple[Use, ...]:
    """Every device of dra_manager_state, once for each pod of its claim; raises ValueError for what is none."""
    return _made_out(_prepared, json.loads(text))


def _made_out(parse: Callable[[Any], Iterator[Use]], record: Any) -> tuple[Use, ...]:
    try:
        return tuple(parse(record))
    except (KeyError, TypeError, AttributeError) as fault:
        raise ValueError(f"it is not of the form that is known ({type(fault).__name__}: {fault})") from None


def _entries(record: Any) -> Iterator[Use]:
    for entry in _list(record["Data"]["PodDeviceEntries"]):
        uid, given = _named(entry["PodUID"]), entry["DeviceIDs"]
        # By the NUMA node; up to 1.19 without.
        parts = given.values() if isinstance(given, dict) else (given,)
        for device in (device for part in parts for device in _list(part)):
            yield Use((_named(device),), f"pod {uid}", uid)


def _prepared(record: Any) -> Iterator[Use]:
    data = _named(record["Data"])
    if crc32(data.encode("utf-8", "surrogatepass")) != record["Checksum"]:
        raise ValueError("its checksum is not that of its data")
    for claim in _list(json.loads(data)["ClaimInfoStateList"]):
        name = f"{claim['Namespace']}/{claim['ClaimName']}"
        for uid in claim["PodUIDs"] or {}:
            for driver, state in (claim["DriverState"] or {}).items():
                for device in _list(state["Devices"]):
                    cdi = [_named(name) for name in _list(device.get("CDIDeviceIDs"))]
                    pool, own = _named(device["PoolName"]), _named(device["DeviceName"])
                    yield dynamic(driver, pool, own, cdi, f"pod {_named(uid)} (claim {name})", uid)


def _named(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError("no name where one is due")
    return given


def _list(given: Any) -> list[Any]:
    """A list; Go writes an empty one as null too."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise ValueError("no list where one is due")
    return given
