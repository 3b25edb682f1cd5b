# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods with devices, and how the kubelet writes them down: the messages of pod-resources v1, and its checkpoints.

Written from the published API (k8s.io/kubelet/pkg/apis/podresources/v1) and the kubelet's types of checkpoints, with
nothing of what reads them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import NamedTuple


class Claim(NamedTuple):
    """A dynamic resource that a container has."""

    driver: str
    pool: str
    device: str
    cdi: tuple[str, ...] = ()
    name: str = "claim"
    uid: str = "0c1d2e3f-0000-4000-8000-000000000000"


class Container(NamedTuple):
    """`kind` is "app", "sidecar" (an init container that is restarted), or "init" (a plain one, never listed)."""

    name: str = "main"
    devices: tuple[str, ...] = ()
    kind: str = "app"
    claims: tuple[Claim, ...] = ()
    resource: str = "bcd.dev/gpu"


class Pod(NamedTuple):
    uid: str
    name: str
    containers: tuple[Container, ...]
    namespace: str = "team-a"


# -- protocol buffers


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes(((value & 0x7F) | 0x80,))
        value >>= 7
    return out + bytes((value,))


def field(number: int, value: bytes | str | int) -> bytes:
    """One field: an integer as a varint (int64, negative ones in ten bytes), anything else delimited by its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (2**64 - 1))
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def listed(pods: Iterable[Pod]) -> bytes:
    """ListPodResourcesResponse."""
    return b"".join(field(1, _pod(pod)) for pod in pods)


def _pod(pod: Pod) -> bytes:
    containers = [container for container in pod.containers if container.kind != "init"]
    return field(1, pod.name) + field(2, pod.namespace) + b"".join(field(3, _container(each)) for each in containers)


def _container(container: Container) -> bytes:
    # Each device apart, as the kubelet sends them: with the NUMA node (TopologyInfo 3: nodes 1: ID 1).
    devices = b"".join(
        field(2, field(1, container.resource) + field(2, device) + field(3, field(1, field(1, at % 2))))
        for at, device in enumerate(container.devices)
    )
    cpus = field(3, varint(2) + varint(300))  # packed
    memory = field(4, field(1, "memory") + field(2, 1 << 40))
    claims = b"".join(
        field(5, field(2, claim.name) + field(3, "team-a") + field(4, _claim(claim))) for claim in container.claims
    )
    return field(1, container.name) + devices + cpus + memory + claims


def _claim(claim: Claim) -> bytes:
    cdi = b"".join(field(1, field(1, name)) for name in claim.cdi)
    return cdi + field(2, claim.driver) + field(3, claim.pool) + field(4, claim.device)


# -- checkpoints


def checkpoint(pods: Iterable[Pod]) -> str:
    """kubelet_internal_checkpoint: plain init containers too; the checksum is Go's own, and any number here."""
    entries = [
        {
            "PodUID": pod.uid,
            "ContainerName": container.name,
            "ResourceName": container.resource,
            "DeviceIDs": {"-1": list(container.devices)},
            "AllocResp": "CgUKAWESAWI=",
        }
        for pod in pods
        for container in pod.containers
        if container.devices
    ]
    data: dict[str, object] = {"PodDeviceEntries": entries or None, "RegisteredDevices": {}}
    return json.dumps({"Data": data, "Checksum": 2_951_736_193})


def claims(pods: Iterable[Pod]) -> str:
    """dra_manager_state: JSON in a string of JSON, with the CRC-32 of the inner text."""
    states = [
        {
            "ClaimUID": claim.uid,
            "ClaimName": claim.name,
            "Namespace": pod.namespace,
            "PodUIDs": {pod.uid: {}},
            "DriverState": {
                claim.driver: {
                    "Devices": [
                        {
                            "PoolName": claim.pool,
                            "DeviceName": claim.device,
                            "RequestNames": ["gpu"],
                            "CDIDeviceIDs": list(claim.cdi) or None,
                        }
                    ]
                }
            },
        }
        for pod in pods
        for container in pod.containers
        for claim in container.claims
    ]
    version = "checkpoint.dra.kubelet.k8s.io/v1"
    data = json.dumps({"kind": "DRACheckpoint", "apiVersion": version, "ClaimInfoStateList": states or None})
    return json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode())})
