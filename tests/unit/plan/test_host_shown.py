# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a status and a report show of a host, made of its facts."""

from __future__ import annotations

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.host_shown import KEYS, shown, untold

A, B = "GPU-a", "GPU-b"


def gpu(uuid: str, *devices: tuple[int, int], **more: Any) -> dict[str, Any]:
    """The facts of a GPU; `devices` are the GPU instance and the compute instance of each of its MIG devices."""
    parts = [
        {"uuid": None, "profile": "1g.10gb", "gi": gi, "ci": ci, "start": number, "size": 1}
        for number, (gi, ci) in enumerate(devices)
    ]
    names = ("index", "pci", "name", "mig_mode", "layout", "slices", "sharing", "processes", "holders")
    return {**dict.fromkeys(names), "uuid": uuid, "allocations": [], "mig_devices": parts, **more}


def hold(name: str, *devices: str, fault: str | None = None) -> dict[str, Any]:
    """The facts of a hold."""
    return {
        "allocation_id": name,
        "binding": "BINDING_HOLD",
        "devices": list(devices),
        "generation": 1,
        "releasing": False,
        "fault": fault,
    }


def facts(**more: Any) -> dict[str, Any]:
    """The facts of a host without a GPU; what is not given is not known."""
    names = ("gpus", "holds", "numa", "kernel", "driver", "reboot_required", "reboot_reasons")
    return {**dict.fromkeys(names), **more}


def test_a_mig_device_is_whose_hold_names_its_instances() -> None:
    told = shown(facts(gpus=[gpu(A, (1, 0), (2, 0)), gpu(B, (1, 0))], holds=[hold("one", f"{A}/gi2/ci0")]))
    assert [[part["allocation_id"] for part in each["mig_devices"]] for each in told["gpus"]] == [[None, "one"], [None]]


def test_slots_are_of_their_gpu_in_the_order_of_their_numbers() -> None:
    held = [hold("one", f"{A}/s11", f"{B}/s0"), hold("two", f"{A}/s3")]
    told = shown(facts(gpus=[gpu(A), gpu(B)], holds=held))
    assert [each["slots"] for each in told["gpus"]] == [
        [{"slot": 3, "allocation_id": "two"}, {"slot": 11, "allocation_id": "one"}],
        [{"slot": 0, "allocation_id": "one"}],
    ]


def test_a_hold_that_cannot_be_made_out_names_nobody() -> None:
    told = shown(facts(gpus=[gpu(A, (1, 0))], holds=[hold("one", f"{A}/gi1/ci0", f"{A}/s1", fault="no JSON")]))
    (only,) = told["gpus"]
    assert ([part["allocation_id"] for part in only["mig_devices"]], only["slots"]) == ([None], [])


def test_without_the_holds_slots_are_not_known() -> None:
    (only,) = shown(facts(gpus=[gpu(A, (1, 0))]))["gpus"]
    assert (only["slots"], [part["allocation_id"] for part in only["mig_devices"]]) == (None, [None])


def test_what_the_facts_do_not_tell_is_null() -> None:
    assert shown(facts()) == dict.fromkeys(KEYS)
    assert shown(facts(gpus=[gpu(A, mig_devices=None)]))["gpus"][0]["mig_devices"] is None


def test_the_reboot_and_the_driver() -> None:
    told = shown(facts(reboot_required=True, reboot_reasons={"cpu": "reboot the node"}, driver={"loaded": "580.95.05"}))
    assert told["reboot"] == {"required": True, "reasons": {"cpu": "reboot the node"}}
    assert told["driver"] == "580.95.05"


def test_a_slot_whose_number_is_none_is_passed_over() -> None:
    (only,) = shown(facts(gpus=[gpu(A)], holds=[hold("one", f"{A}/s{'9' * 5000}", f"{A}/s\u0663")]))["gpus"]
    assert only["slots"] == []


def test_of_what_is_unreadable_that_is_told_which_is_shown() -> None:
    ours = ["gpus[0].layout: x", "gpus: x", "holds: x", "numa: x", "kernel: x", "driver: x", "reboot_required: x"]
    others = ["cpu: x", "kubelet.server: x", "driver_x: y", "rebooted_for: x", "applied: x", "fabric: gpus: x"]
    assert untold([*ours, *others]) == ours
