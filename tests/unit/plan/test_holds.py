# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids of devices, and whose GPUs a hold has."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.atoms import is_atom, is_slot, mig_device, parent
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_listed import Listed, MigDevice
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.holds import Hold, has, has_slots_only, resolved

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
B = "GPU-5f1c2a90-0000-4000-8000-000000000002"
UUID = "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"


@pytest.mark.parametrize(
    ("given", "known", "slot"),
    [
        (A, True, False),
        (f"{A}/gi1/ci0", True, False),
        (f"{A}/s3", True, True),
        (UUID, True, False),
        (f"MIG-{A}/2/0", True, False),
        ("", False, False),
        ("eth0", False, False),
        (f"{A}/x", False, False),
        (f"{A}/gi1", False, False),
        (f"{A}/gi1/ci", False, False),
        (f"{A}/s", False, False),
        (f"{A}/s3/s4", False, False),
        (f"{A} {B}", False, False),
        (f"{A}\n", False, False),
    ],
)
def test_what_is_the_id_of_a_device(given: str, known: bool, slot: bool) -> None:
    assert (is_atom(given), is_slot(given)) == (known, slot)


@pytest.mark.parametrize("given", [None, 1, [A], {"id": A}])
def test_what_is_no_text_is_no_id(given: Any) -> None:
    assert not is_atom(given)


def test_a_mig_device_is_named_by_its_instances() -> None:
    assert mig_device(A, 7, 1) == f"{A}/gi7/ci1"
    assert is_atom(mig_device(A, 7, 1))


@pytest.mark.parametrize(
    ("device", "gpu"),
    [
        (A, A),
        (f"{A}/gi1/ci0", A),
        (f"{A}/s3", A),
        (f"MIG-{A}/2/0", A),  # up to R460 the UUID says it
        ("MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054", None),
    ],
)
def test_the_gpu_of_a_device(device: str, gpu: str | None) -> None:
    assert parent(device) == gpu


def test_whose_gpu_a_hold_has() -> None:
    assert [has(Hold("a", (f"{A}/s1",)), gpu) for gpu in (A, B)] == [True, False]
    assert [has(Hold("a", (), fault="it cannot be read"), gpu) for gpu in (A, B)] == [True, True]
    assert [has(Hold("a"), gpu) for gpu in (A, B)] == [False, False]


def test_a_mig_devices_uuid_is_attributed_by_the_listing_and_is_any_gpus_without() -> None:
    mig = "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"
    hold = Hold("a", (mig,))
    assert [has(hold, gpu) for gpu in (A, B)] == [True, True]
    listed = (Listed(0, "H100", A), Listed(1, "H100", B, (MigDevice("3g.40gb", 0, mig),)))
    assert [has(resolved(hold, listed), gpu) for gpu in (A, B)] == [False, True]
    assert [has(resolved(hold, listed[:1]), gpu) for gpu in (A, B)] == [True, True]


def test_slots_and_what_is_more() -> None:
    assert has_slots_only(Hold("a", (f"{A}/s0", f"{B}/s12")))
    for more in (A, f"{A}/gi1/ci0", UUID):
        assert not has_slots_only(Hold("a", (f"{A}/s0", more)))
    assert not has_slots_only(Hold("a", fault="it cannot be read"))
