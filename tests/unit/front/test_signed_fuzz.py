# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a control plane signs, a pass over it ends with a result: it may rightly sign what is none of ours."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import holds, opening, section
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER
from tests.unit.fake_host import FakeHost
from tests.unit.front.test_attacks import PLANE, by_holds, by_section, unlocked

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.sampled_from(["", "a", "GPU-1", "GPU-1/gi0/ci0", "../a"]),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["id", "cpus", "mems", "A"]), inside, max_size=3)
    ),
    max_leaves=5,
)
GOOD = {"allocation_id": "a", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-1"}]}
FIELDS = [*GOOD, "reservation_id", "limits", "env", "instance_id", "more"]
ASSIGNMENTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3).map(lambda changes: {**GOOD, **changes})
SETTINGS = (
    "load options blacklist vm.swappiness pages2m pages1g perNuma governor isolate passthrough branch open version "
    "powerLimitWatts ecc gpus layout mode replicas cdi runtimes apiServer caCertSha256 labels taints joinTokenRef more"
).split()
UNITS = st.dictionaries(
    st.sampled_from([*ORDER, "other"]), st.dictionaries(st.sampled_from(SETTINGS), VALUES, max_size=4), max_size=4
)
assert issubclass(PredictedHost, Host)  # made from the class of the real one, before its name is another's


@given(UNITS, st.lists(ASSIGNMENTS, max_size=2), st.booleans())
@settings(max_examples=100)
def test_anything_that_is_signed_ends_with_a_result(units: Any, devices: Any, check: bool) -> None:
    host = FakeHost({CONFIG: PLANE.config()})
    spec = PLANE.desired_state(host=units, devices=devices)
    with pytest.MonkeyPatch.context() as patched:
        for module in (machine, holds, section):
            patched.setattr(module, "Host", lambda: host)
        patched.setattr(opening, "only_pass", unlocked)
        held = by_holds(check, signed_spec=spec)
        converged = by_section(check, signed_spec=spec)
    assert held["section"]["state"] in {"CONVERGED", "PROGRESSING", "FAILED"}
    assert {unit["unit"] for unit in converged["units"]} == set(units)
    assert not check or host.calls == []
