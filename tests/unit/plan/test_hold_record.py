# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's record of a hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import HOLD, KUBERNETES, Device, Limits
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import BINDING, BOUND, Held
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hold_record import parse, record_path, render
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.holds import record_devices

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
PATH = "/var/lib/bcd-hostconfig/holds/alloc_1.json"
PLAIN = Held("alloc_1", (Device(A),), since=1_800_000_000, generation=42, reservation="rsv_1")
WHOLE: dict[str, Any] = {
    "version": 1,
    "allocation_id": "alloc_1",
    "reservation_id": "rsv_1",
    "binding": "BINDING_HOLD",
    "generation": 42,
    "devices": [{"id": A, "device_class": "gpu"}],
    "env": [],
    "since": 1_800_000_000,
    "state": "bound",
}


def test_its_form() -> None:
    assert record_path("alloc_1") == PATH
    assert json.loads(render(PLAIN)) == WHOLE
    sliced = PLAIN._replace(limits=Limits(cpus="0-3", memory_bytes=4096), env=("A=1",), state=BINDING)
    limits = {"cpus": "0-3", "memory_bytes": 4096}
    assert json.loads(render(sliced)) == {**WHOLE, "limits": limits, "env": ["A=1"], "state": "binding"}


def test_other_units_read_its_devices() -> None:
    assert record_devices(json.loads(render(PLAIN))) == (A,)


LIMITS = st.tuples(
    st.none() | st.text(), st.none() | st.text(), *(st.none() | st.integers(min_value=1) for _limit in range(4))
).map(lambda fields: Limits(*fields))
ATOMS = st.from_regex(r"GPU-[0-9a-f]{1,8}(/gi[0-9]/ci[0-9]|/s[0-9])?", fullmatch=True)
HELDS = st.tuples(
    st.from_regex(r"[A-Za-z0-9_]{1,80}", fullmatch=True),
    st.lists(st.builds(Device, ATOMS, st.sampled_from(["gpu", "gpu.mig", "gpu.slot"])), min_size=1).map(tuple),
    st.sampled_from([HOLD, KUBERNETES]),
    st.text(),
    st.integers(min_value=0),
    st.none() | LIMITS,
    st.lists(st.text()).map(tuple),
    st.integers(min_value=0),
    st.sampled_from([BINDING, BOUND]),
).map(lambda fields: Held(*fields))


@given(HELDS)
def test_what_is_written_is_read(held: Held) -> None:
    text = render(held)
    assert parse(PATH, text) == held._replace(record_text=text)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"version": 2},
        {"state": "half"},
        {"binding": "BINDING_NODE"},
        {"devices": []},
        {"devices": [A]},
        {"devices": [{"id": A}]},
        {"devices": [{"id": "", "device_class": "gpu"}]},
        {"devices": [{"id": A, "device_class": "gpu"}, {"id": "../x", "device_class": "gpu"}]},
        {"generation": "42"},
        {"since": True},
        {"env": None},
        {"env": [1]},
        {"limits": {"gpus": 1}},
        {"limits": {"memory_bytes": "4G"}},
        {"limits": {"cpus": 3}},
        {"allocation_id": None},
    ],
)
def test_a_damaged_record_is_none(spoiled: dict[str, Any]) -> None:
    with pytest.raises(StepFailed, match="is not a record of version 1") as fault:
        parse(PATH, json.dumps({**WHOLE, **spoiled}))
    assert fault.value.retryable is False


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_text_that_is_no_record_is_none(text: str) -> None:
    with pytest.raises(StepFailed, match="is not a record of version 1"):
        parse(PATH, text)
