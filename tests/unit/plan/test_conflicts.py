# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has which silicon, in the words of the specification."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import Device
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.conflicts import Claims

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
B = "GPU-5f1c2a90-0000-4000-8000-000000000002"
PENDING = "(pending Kubernetes releases that could not be read)"


def devices(*ids: str) -> tuple[Device, ...]:
    return tuple(map(Device, ids))


@pytest.mark.parametrize(
    ("held", "wanted", "message"),
    [
        ([A], [A], f"{A} is assigned to alloc_1"),
        ([A], [B], ""),
        ([A], [B, A], f"{A} is assigned to alloc_1"),
        ([A], [f"{A}/s0"], f"{A} is assigned to alloc_1"),
        ([A], [f"{A}/gi1/ci0"], f"{A} is assigned to alloc_1"),
        ([f"{A}/s3"], [A], f"{A} has {A}/s3 assigned to alloc_1"),
        ([f"{A}/gi1/ci0"], [A], f"{A} has {A}/gi1/ci0 assigned to alloc_1"),
        ([f"{A}/s3"], [f"{A}/s3"], f"{A}/s3 is assigned to alloc_1"),
        ([f"{A}/s3"], [f"{A}/s4"], ""),
        ([f"{A}/s3"], [f"{A}/s33"], ""),
        ([f"{A}/gi1/ci0"], [f"{A}/gi1/ci0"], f"{A}/gi1/ci0 is assigned to alloc_1"),
        ([f"{A}/gi1/ci0"], [f"{A}/gi1/ci1"], ""),
        ([f"{A}/gi1/ci0"], [f"{A}/gi2/ci0"], ""),
        ([f"{A}/gi1/ci0"], [f"{A}/s0"], f"{A} has {A}/gi1/ci0 assigned to alloc_1"),
        ([f"{A}/s3"], [f"{A}/gi1/ci0"], f"{A} has {A}/s3 assigned to alloc_1"),
        ([f"{B}/s3"], [A, f"{A}/s3"], ""),
        ([A], [B, B], "a device is listed twice"),
        ([A], [A, A], "a device is listed twice"),
        (["MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"], [B], f"{B} is assigned to alloc_1"),
        ([A.upper()], [A], f"{A} is assigned to alloc_1"),
    ],
)
def test_what_is_held_is_refused(held: list[str], wanted: list[str], message: str) -> None:
    claims = Claims()
    claims.add("alloc_1", devices(*held))
    assert claims.conflict(devices(*wanted)) == message


def test_each_part_names_who_has_it() -> None:
    claims = Claims()
    claims.add("alloc_1", devices(f"{A}/s0"))
    claims.add("alloc_2", devices(f"{A}/s1"))
    assert claims.conflict(devices(f"{A}/s1")) == f"{A}/s1 is assigned to alloc_2"
    assert claims.conflict(devices(A)) == f"{A} has {A}/s0 assigned to alloc_1"


@pytest.mark.parametrize("wanted", [A, f"{A}/s0", f"{A}/gi1/ci0"])
def test_a_gpu_of_a_virtual_machine_is_nobody_elses(wanted: str) -> None:
    claims = Claims({A.upper(): "vm-7"})
    claims.add("alloc_1", devices(A))
    assert claims.conflict(devices(wanted)) == f"{A} is passed through to instance vm-7"
    assert claims.conflict(devices(B)) == ""


@pytest.mark.parametrize("wanted", [A, f"{A}/s0"])
def test_who_may_have_any_gpu_has_every_one(wanted: str) -> None:
    claims = Claims()
    claims.add_every(PENDING)
    assert claims.conflict(devices(wanted)) == f"{A} is assigned to {PENDING}"
