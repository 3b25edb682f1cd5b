# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section of devices: what it says, and what is refused of it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import (
    HOLD,
    Assignment,
    Device,
    Instance,
    Limits,
    Section,
    check,
)

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
ONE: dict[str, Any] = {"allocation_id": "alloc_1", "binding": HOLD, "devices": [{"id": A, "device_class": "gpu"}]}


def refused(given: dict[str, Any]) -> str:
    with pytest.raises(Refused) as fault:
        check(given)
    return fault.value.message


def of(**more: Any) -> dict[str, Any]:
    """A section of one assignment that has `more`; None takes a key out."""
    one = {**ONE, **more}
    return {"assignments": [{key: value for key, value in one.items() if value is not None}]}


def test_all_that_can_be_said() -> None:
    limits = {"cpus": "0-3", "mems": "0", "cpu_millis": 1500, "memory_bytes": 4096, "hugepages_2mi": 8}
    given = {
        "assignments": [{**ONE, "reservation_id": "rsv_1", "limits": limits, "env": ["A=1", "B="], "instance_id": "x"}],
        "generation": 42,
        "passthrough": [{"gpu": A, "instance": "vm-1"}],
        "instances": [{"id": "vm-1", "memory_bytes": 1 << 30, "hugepages": True}, {"id": "vm-2"}],
        "max_cdi_version": "0.5.0",
        "slot_count": 8,
        "acknowledge": ["bound-alloc_1-42-1"],
        "node_id": "node-1",
    }
    assert check(given) == Section(
        (Assignment("alloc_1", HOLD, (Device(A, "gpu"),), "rsv_1", Limits("0-3", "0", 1500, 4096, 8), ("A=1", "B=")),),
        42,
        {A: "vm-1"},
        (Instance("vm-1", 1 << 30, True), Instance("vm-2")),
        "0.5.0",
        8,
        "node-1",
        frozenset({"bound-alloc_1-42-1"}),
    )


def test_what_is_not_said() -> None:
    assert check(of()) == Section((Assignment("alloc_1", HOLD, (Device(A, "gpu"),)),))
    assert check({"assignments": []}) == Section()


def test_an_empty_class_is_a_gpu() -> None:
    for device in ({"id": A}, {"id": A, "device_class": ""}):
        assert check(of(devices=[device])).assignments[0].devices == (Device(A, "gpu"),)


def test_limits_that_say_nothing_are_none_of_their_kind_and_still_limits() -> None:
    """A message of the control plane has 0 and "" for what is not booked."""
    assert check(of(limits={})).assignments[0].limits == Limits()
    assert check(of(limits={"cpus": "", "cpu_millis": 0, "memory_bytes": 4096})).assignments[0].limits == Limits(
        memory_bytes=4096
    )


@pytest.mark.parametrize("binding", ["BINDING_INSTANCE", "BINDING_NODE", "hold", ""])
def test_a_binding_that_is_none_is_no_bad_option(binding: str) -> None:
    assert check(of(binding=binding)).assignments[0].binding == binding


@pytest.mark.parametrize("device", [{"id": A, "device_class": "nic.vf"}, {"id": "GPU-a/x", "device_class": "gpu.mig"}])
def test_a_device_that_cannot_be_held_is_no_bad_option(device: dict[str, str]) -> None:
    assert check(of(devices=[device])).assignments[0].devices == (Device(device["id"], device["device_class"]),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "assignments is not given: give the whole list, [] to release all"),
        ({"assignments": None}, "assignments is null, and takes a list"),
        (of(allocation_id=None), "assignments[0] has no allocation_id"),
        (of(binding=None), "assignments[0] has no binding"),
        (of(devices=None), "assignments[0] has no devices"),
        (of(devices=[]), "assignments[0] has no devices: name at least one"),
        (of(devices=[{"device_class": "gpu"}]), "assignments[0].devices[0] has no id"),
        (of(devices=[A]), f"assignments[0].devices[0] is a string ({A!r}), and takes a mapping"),
        (of(devices=[{"id": A, "node": 1}]), "'assignments[0].devices[0].node' is no"),
        (of(allocation_id="a-1"), "assignments[0].allocation_id 'a-1' is none (letters, digits and _, at most 80)"),
        (of(allocation_id=""), "assignments[0].allocation_id '' is none"),
        (of(allocation_id="a" * 81), "is none (letters, digits and _, at most 80)"),
        (of(allocation_id="a\n"), "is none (letters, digits and _, at most 80)"),
        (of(allocation_id="\u0661"), "is none (letters, digits and _, at most 80)"),
        (of(allocation_id="../x"), "is none (letters, digits and _, at most 80)"),
        ({"assignments": [ONE, ONE]}, "the allocation alloc_1 is there twice"),
        (of(reservation_id="r\nBCD=1"), "assignments[0].reservation_id 'r\\nBCD=1' has characters that are not print"),
        (of(binding="x\x00"), "assignments[0].binding 'x\\x00' has characters that are not printable"),
        (of(devices=[{"id": A + "\n"}]), "assignments[0].devices[0].id"),
        (of(limits={"memory_bytes": -1}), "assignments[0].limits.memory_bytes is -1, and cannot be less than 0"),
        (
            of(limits={"memory_bytes": "4G"}),
            "assignments[0].limits.memory_bytes is a string ('4G'), and takes an integer",
        ),
        (of(limits={"cpu_millis": True}), "assignments[0].limits.cpu_millis is true or false (True), and takes an int"),
        (of(limits={"gpus": 1}), "'assignments[0].limits.gpus' is no key of limits"),
        (of(priority=1), "'assignments[0].priority' is no key of assignments"),
        ({"assignments": [], "generation": "1"}, "generation is a string ('1'), and takes an integer"),
        ({"assignments": [], "generation": -1}, "generation is -1, and cannot be less than 0"),
        ({"assignments": [], "slot_count": 0}, "slot_count is 0: a GPU has at least 1 slot"),
        ({"assignments": [], "slot_count": -(10**5000)}, "slot_count has more than 63 bits"),
        ({"assignments": [], "generation": 2**63}, "generation has more than 63 bits"),
        (of(limits={"cpu_millis": 10**5000}), "assignments[0].limits.cpu_millis has more than 63 bits"),
        (of(limits={"memory_bytes": -(10**5000)}), "assignments[0].limits.memory_bytes has more than 63 bits"),
        (
            {"assignments": [], "instances": [{"id": "v", "memory_bytes": 2**63}]},
            "instances[0].memory_bytes has more than 63 bits",
        ),
        ({"assignments": [], "max_cdi_version": "0.5"}, "max_cdi_version '0.5' is none of 0.3.0, 0.4.0, 0.5.0"),
        ({"assignments": [], "passthrough": [{"gpu": A}]}, "passthrough[0] has no instance"),
        (
            {"assignments": [], "passthrough": [{"gpu": "0000:17:00.0", "instance": "v"}]},
            "passthrough[0].gpu is '0000:17:00.0', and takes a GPU's UUID",
        ),
        ({"assignments": [], "passthrough": [{"gpu": A, "instance": "v"}] * 2}, f"passthrough names {A} twice"),
        ({"assignments": [], "instances": [{"memory_bytes": 1}]}, "instances[0] has no id"),
        ({"assignments": [], "acknowledge": [1]}, "acknowledge[0] is 1, and takes the id of an event"),
        ({"assignments": [], "node_id": "a\tb"}, "node_id 'a\\tb' has characters that are not printable"),
        ({"assignments": [], "bind": []}, "'bind' is no setting of this unit"),
    ],
)
def test_bad_options_are_refused(given: dict[str, Any], message: str) -> None:
    assert message in refused(given)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("A=1\nB=2", "is not one line"),
        ("A=1\n", "is not one line"),
        ("A=1\rB=2", "is not one line"),
        ("A=1\x00", "is not one line"),
        ("A=1\u2028", "is not one line"),
        ("hunter2", "is no KEY=VALUE"),
        ("=hunter2", "is no KEY=VALUE"),
        ("", "is not one line"),
        ("BCD_ALLOCATION_ID=hunter2", "sets BCD_ALLOCATION_ID, which is ours to set"),
        (" BCD_CGROUP_PARENT =hunter2", "sets BCD_CGROUP_PARENT, which is ours to set"),
        ("export NVIDIA_VISIBLE_DEVICES=all", "sets NVIDIA_VISIBLE_DEVICES, which is ours to set"),
        ("BCD_RESERVATION_ID=", "sets BCD_RESERVATION_ID, which is ours to set"),
        ("BCD_DEVICE_ID=", "sets BCD_DEVICE_ID, which is ours to set"),
        ("CUDA_MPS_PIPE_DIRECTORY=/x", "sets CUDA_MPS_PIPE_DIRECTORY, which is ours to set"),
        (7, "is no string: put it in quotes"),
        ("A=hunter2\ud800", "has half a character, which no file in UTF-8 can hold"),
    ],
)
def test_env_lines_that_are_none_are_refused_without_what_they_hold(line: Any, why: str) -> None:
    said = refused(of(env=["A=1", line]))
    assert said == f"devices: assignments[0].env[1] {why}: correct the options"


def test_what_holds_an_env_is_not_told_either() -> None:
    said = refused(of(env="TOKEN=hunter2"))
    assert said == "devices: assignments[0].env is no list of KEY=VALUE: correct the options"


def test_all_that_is_wrong_is_named_at_once() -> None:
    given = {"assignments": [{**ONE, "allocation_id": "a-1"}, {**ONE, "devices": []}], "slot_count": 0}
    said = refused(given)
    assert all(part in said for part in ("assignments[0].allocation_id", "assignments[1] has no devices", "slot_count"))
