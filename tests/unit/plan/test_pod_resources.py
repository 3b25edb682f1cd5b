# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kubelet says of its pods' devices: protocol buffers and checkpoints, whole, empty and damaged."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pod_resources import (
    Use,
    checkpoint,
    claims,
    listed,
)
from tests.kubelet import pods as written
from tests.kubelet.pods import Claim, Container, Pod, field, varint

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
UID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"


# -- the list


def test_a_message_byte_by_byte() -> None:
    # PodResources{name "p", namespace "n", ContainerResources{name "c", ContainerDevices{resource "r", ids "x", "y"}}}
    message = bytes.fromhex("0a16 0a0170 12016e 1a0e 0a0163 1209 0a0172 120178 120179".replace(" ", ""))
    assert listed(message) == (Use(("x",), "pod n/p"), Use(("y",), "pod n/p"))
    assert listed(b"") == ()


def test_what_is_not_known_yet_is_passed_over() -> None:
    later = field(9, "later") + field(10, 7) + varint(11 << 3 | 5) + b"1234" + varint(12 << 3 | 1) + b"12345678"
    devices = field(1, "r") + field(2, "x") + later
    pod = field(1, "p") + field(2, "n") + field(3, field(2, devices) + later) + later
    assert listed(field(1, pod) + later) == (Use(("x",), "pod n/p"),)


def test_devices_and_dynamic_resources_of_every_container_but_plain_init_ones() -> None:
    claim = Claim("gpu.example.com", "node-1", "gpu-0", ("bcd.dev/gpu=GPU-x", "other.dev/y=z"))
    pod = Pod(
        UID,
        "train",
        (
            Container("warm", ("init-device",), kind="init"),
            Container("proxy", ("side-device",), kind="sidecar"),
            Container("main", (A, "b"), claims=(claim,)),
            Container("idle"),
        ),
    )
    names = [use.names for use in listed(written.listed([pod]))]
    assert names == [
        ("side-device",),
        (A,),
        ("b",),
        ("gpu.example.com/node-1/gpu-0", "bcd.dev/gpu=GPU-x", "other.dev/y=z", "gpu-0"),
    ]
    assert {use.pod for use in listed(written.listed([pod]))} == {"pod team-a/train"}
    dynamic = listed(written.listed([pod]))[-1]
    assert (dynamic.driver, dynamic.device) == ("gpu.example.com", "gpu-0")


def test_20_000_pods() -> None:
    pods = [Pod(str(at), f"p{at}", (Container("main", (f"dev-{at}",)),)) for at in range(20_000)]
    message = written.listed(pods)
    assert len(message) > 1_000_000
    found = listed(message)
    assert len(found) == 20_000
    assert found[-1] == Use(("dev-19999",), "pod team-a/p19999")


WHOLE = written.listed([Pod(UID, "train", (Container("main", (A,)),))])


@pytest.mark.parametrize(
    "message",
    [
        WHOLE[:-1],
        WHOLE[:1],
        b"\x0a",
        b"\x0b\x0c",  # groups, which version 3 has none of
        b"\x02\x00",  # the field 0
        b"\x0a\x7fshort",
        b"\xff" * 11,
        field(1, field(1, b"\xff\xfe") + field(3, b"")),  # a name that is no UTF-8
        b"<html>",
    ],
)
def test_a_message_that_is_none(message: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are Python's own here and there
        listed(message)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_a_fault(message: bytes) -> None:
    try:
        listed(message)
    except ValueError:
        return


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_a_damaged_byte_is_a_message_or_a_fault(at: int, byte: int) -> None:
    try:
        listed(WHOLE[:at] + bytes((byte,)) + WHOLE[at + 1 :])
    except ValueError:
        return


# -- the device manager's checkpoint


def test_a_checkpoint() -> None:
    text = json.dumps(
        {
            "Data": {
                "PodDeviceEntries": [
                    {
                        "PodUID": UID,
                        "ContainerName": "c",
                        "ResourceName": "r",
                        "DeviceIDs": {"0": [A], "1": ["x", "y"]},
                    },
                    {"PodUID": "two", "ContainerName": "c", "ResourceName": "r", "DeviceIDs": {"-1": ["z"]}},
                ],
                "RegisteredDevices": {"r": [A, "x", "y", "z"]},
            },
            "Checksum": 1,
        }
    )
    assert [(use.names, use.uid) for use in checkpoint(text)] == [
        ((A,), UID),
        (("x",), UID),
        (("y",), UID),
        (("z",), "two"),
    ]
    assert checkpoint(text)[0].pod == f"pod {UID}"


def test_a_checkpoint_from_before_numa_nodes() -> None:
    data = {"PodDeviceEntries": [{"PodUID": UID, "DeviceIDs": [A]}], "RegisteredDevices": {}}
    assert checkpoint(json.dumps({"Data": data, "Checksum": 1})) == (Use((A,), f"pod {UID}", UID),)


def test_a_checkpoint_of_no_pod() -> None:
    assert checkpoint('{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3}') == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        '{"Data": null}',
        '{"Data": {}}',
        '{"Data": {"PodDeviceEntries": {}}}',
        '{"Data": {"PodDeviceEntries": [1]}}',
        '{"Data": {"PodDeviceEntries": [{"PodUID": "a"}]}}',
        '{"Data": {"PodDeviceEntries": [{"DeviceIDs": {"0": ["x"]}}]}}',
        '{"Data": {"PodDeviceEntries": [{"PodUID": "", "DeviceIDs": {"0": ["x"]}}]}}',
        '{"Data": {"PodDeviceEntries": [{"PodUID": "a", "DeviceIDs": {"0": [1]}}]}}',
        '{"Data": {"PodDeviceEntries": [{"PodUID": "a", "DeviceIDs": {"0": "x"}}]}}',
        '{"Data": {"PodDeviceEntries": [{"PodUID": "a", "DeviceIDs": "x"}]}}',
    ],
)
def test_a_checkpoint_that_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of no JSON, the words are Python's own
        checkpoint(text)


# -- the checkpoint of claims


def state(data: Any, checksum: int | None = None) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode()) if checksum is None else checksum})


def test_claims_of_several_pods_and_drivers() -> None:
    data = {
        "kind": "DRACheckpoint",
        "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
        "ClaimInfoStateList": [
            {
                "ClaimUID": "c1",
                "ClaimName": "shared",
                "Namespace": "team-a",
                "PodUIDs": {"one": {}, "two": {}},
                "DriverState": {
                    "gpu.example.com": {
                        "Devices": [
                            {
                                "PoolName": "node-1",
                                "DeviceName": "gpu-0",
                                "RequestNames": ["gpu"],
                                "CDIDeviceIDs": ["bcd.dev/gpu=GPU-x"],
                            }
                        ]
                    }
                },
            },
            {"ClaimUID": "c2", "ClaimName": "idle", "Namespace": "team-a", "PodUIDs": None, "DriverState": None},
        ],
    }
    found = claims(state(data))
    assert [(use.uid, use.names) for use in found] == [
        ("one", ("gpu.example.com/node-1/gpu-0", "bcd.dev/gpu=GPU-x", "gpu-0")),
        ("two", ("gpu.example.com/node-1/gpu-0", "bcd.dev/gpu=GPU-x", "gpu-0")),
    ]
    assert found[0].pod == "pod one (claim team-a/shared)"
    assert (found[0].driver, found[0].device) == ("gpu.example.com", "gpu-0")


def test_no_claims() -> None:
    assert claims(state({"kind": "DRACheckpoint", "ClaimInfoStateList": None})) == ()


def test_the_checksum_is_that_of_the_data() -> None:
    with pytest.raises(ValueError, match="checksum"):
        claims(state({"ClaimInfoStateList": []}, checksum=1))
    # CRC-32 (IEEE 802.3) of "123456789" is 0xcbf43926: with it, the text is only no JSON object.
    with pytest.raises(ValueError, match="not of the form"):
        claims(json.dumps({"Data": "123456789", "Checksum": 0xCBF43926}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        '{"version": "v1", "entries": [{"DriverName": "x"}], "checksum": 7}',  # up to Kubernetes 1.30
        state("{"),
        state("null"),
        state({}),
        state({"ClaimInfoStateList": {}}),
        state({"ClaimInfoStateList": [{"PodUIDs": {"a": {}}}]}),
        state({"ClaimInfoStateList": [{"ClaimName": "c", "Namespace": "n", "PodUIDs": {"a": {}}}]}),
        state(
            {
                "ClaimInfoStateList": [
                    {"ClaimName": "c", "Namespace": "n", "PodUIDs": {"a": {}}, "DriverState": {"d": {"Devices": [{}]}}}
                ]
            }
        ),
    ],
)
def test_a_checkpoint_of_claims_that_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of no JSON, the words are Python's own
        claims(text)


def test_the_stand_in_s_checkpoints() -> None:
    claim = Claim("gpu.example.com", "node-1", "gpu-0")
    pod = Pod(UID, "train", (Container("init", ("x",), kind="init"), Container("main", (A,), claims=(claim,))))
    assert [use.names for use in checkpoint(written.checkpoint([pod]))] == [("x",), (A,)]
    assert [use.names for use in claims(written.claims([pod]))] == [("gpu.example.com/node-1/gpu-0", "gpu-0")]
    assert (checkpoint(written.checkpoint([])), claims(written.claims([]))) == ((), ())
