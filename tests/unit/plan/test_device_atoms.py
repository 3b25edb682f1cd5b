# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of an assignment against those of a host."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotReady, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import Unknown
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import Device
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.device_atoms import (
    Failure,
    Resolved,
    by_uuid,
    resolve,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Card

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
B = "GPU-5f1c2a90-0000-4000-8000-000000000002"
MIG = "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"
CARDS = by_uuid((Card(A), Card(B, mig={(7, 0): MIG, (8, 0): ""})))


@pytest.mark.parametrize(
    ("device", "gpu", "visible"),
    [
        (Device(A), A, A),
        (Device(f"{A}/s0", "gpu.slot"), A, A),
        (Device(f"{A}/s47", "gpu.slot"), A, A),
        (Device(f"{B}/gi7/ci0", "gpu.mig"), B, MIG),
    ],
)
def test_what_is_there(device: Device, gpu: str, visible: str) -> None:
    assert resolve((device,), CARDS, 48) == (Resolved(device, gpu, visible),)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device("GPU-a"), "GPU-a not present"),
        (Device("GPU-a/gi1/ci0", "gpu.mig"), "GPU-a not present"),
        (Device("GPU-a/s1", "gpu.slot"), "GPU-a not present"),
        (Device(MIG), f"{MIG} not present"),
        (Device(f"{A}/s1"), f"{A}/s1 not present"),
        (Device(f"{A}/gi1/ci0", "gpu.mig"), f"{A} has no MIG instance gi1/ci0"),
        (Device(f"{B}/gi7/ci1", "gpu.mig"), f"{B} has no MIG instance gi7/ci1"),
        (Device(f"{B}/gi8/ci0", "gpu.mig"), f"{B} has no MIG instance gi8/ci0"),  # nvidia-smi -L has no UUID of it
        (Device(f"{A}/s48", "gpu.slot"), f"{A} has no slot s48: this host has 48 a GPU"),
    ],
)
def test_what_is_missing(device: Device, message: str) -> None:
    assert resolve((Device(B), device), CARDS, 48) == Failure("device-missing", message)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device("0000:3b:02.1", "nic.vf"), "device class nic.vf cannot be held"),
        (Device("sda", "disk"), "device class disk cannot be held"),
        (Device(A, "GPU"), "device class GPU cannot be held"),
        (Device("GPU-a/x", "gpu.mig"), '"GPU-a/x" is not a MIG instance id (<gpu>/gi<g>/ci<c>)'),
        (Device(A, "gpu.mig"), f'"{A}" is not a MIG instance id (<gpu>/gi<g>/ci<c>)'),
        (Device(f"{A}/gi01/ci0", "gpu.mig"), f'"{A}/gi01/ci0" is not a MIG instance id (<gpu>/gi<g>/ci<c>)'),
        (Device(f"{A}/gi1/ci\u0661", "gpu.mig"), f'"{A}/gi1/ci\u0661" is not a MIG instance id (<gpu>/gi<g>/ci<c>)'),
        (Device("GPU-a", "gpu.slot"), '"GPU-a" is not a slot id (<gpu>/s<k>)'),
        (Device(f"{A}/s03", "gpu.slot"), f'"{A}/s03" is not a slot id (<gpu>/s<k>)'),
        (Device(f"{A}/s-1", "gpu.slot"), f'"{A}/s-1" is not a slot id (<gpu>/s<k>)'),
        (Device(f"{A}/s1/s2", "gpu.slot"), f'"{A}/s1/s2" is not a slot id (<gpu>/s<k>)'),
    ],
)
def test_what_cannot_be_held_comes_before_what_is_missing(device: Device, message: str) -> None:
    assert resolve((Device("GPU-a"), device), CARDS, 48) == Failure("unsupported-device", message)


def test_every_missing_device_is_named_once() -> None:
    wanted = (
        Device("GPU-a/s1", "gpu.slot"),
        Device("GPU-a/s2", "gpu.slot"),
        Device(f"{A}/gi1/ci0", "gpu.mig"),
        Device("GPU-b"),
    )
    missing = f"GPU-a not present; {A} has no MIG instance gi1/ci0; GPU-b not present"
    assert resolve(wanted, CARDS, 48) == Failure("device-missing", missing)


def test_a_slot_that_is_held_is_there_whatever_the_count() -> None:
    slot = Device(f"{A}/s60", "gpu.slot")
    assert resolve((slot,), CARDS) == (Resolved(slot, A, A),)


def test_a_gpu_that_does_not_answer_is_not_missing() -> None:
    cards = by_uuid((Card(A, fault="nvidia-smi shows [GPU is lost]"), Card(B)))
    with pytest.raises(NotReady, match="GPU is lost"):
        resolve((Device(A),), cards, 48)
    assert resolve((Device(B),), cards, 48) == (Resolved(Device(B), B, B),)


def test_instances_that_cannot_be_listed_are_not_missing() -> None:
    cards = by_uuid((Card(A, mig=Unknown(StepFailed("mig -lci prints nothing"))),))  # type: ignore[arg-type]
    with pytest.raises(NotReady, match="-lci prints nothing"):
        resolve((Device(f"{A}/gi1/ci0", "gpu.mig"),), cards, 48)
    assert resolve((Device(A),), cards, 48) == (Resolved(Device(A), A, A),)
