# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings with mappings inside: one table from which the wire check and the module's options both come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Field, Plan, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.settings import strict
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.settings_faults import faults
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.wire_form import wire_settings

SELECT = (Field("uuid", "uuid", (str,)), Field("index", "index", (int,)))
FIELDS = (
    Field("powerLimitWatts", "power_limit_watts", (int,)),
    Field(
        "gpus",
        "gpus",
        (list,),
        (Field("select", "select", (dict,), SELECT), Field("powerLimitWatts", "power_limit_watts", (int,))),
    ),
)
UNIT = Unit("gpu-settings", FIELDS, dict, lambda *_: None, lambda *_: Plan(), lambda *_: Plan())


def test_settings_that_fit_their_tables_are_taken() -> None:
    given = {"powerLimitWatts": 300, "gpus": [{"select": {"index": 0}, "powerLimitWatts": 400}]}
    assert strict("gpu-settings", FIELDS, given) == given


@pytest.mark.parametrize(
    ("gpus", "fault"),
    [
        ({"select": {}}, "gpus is a mapping"),
        ([300], "gpus[0] is an integer (300), and takes a mapping"),
        ([{"watts": 1}], "'gpus[0].watts' is no key of gpus (it takes powerLimitWatts, select)"),
        ([{}, {"powerLimitWatts": True}], "gpus[1].powerLimitWatts is true or false (True), and takes an integer"),
        ([{"select": "GPU-1"}], "gpus[0].select is a string ('GPU-1'), and takes a mapping"),
        ([{"select": {"index": "0"}}], "gpus[0].select.index is a string ('0'), and takes an integer"),
        ([{"select": {"slot": 0}}], "'gpus[0].select.slot' is no key of select (it takes index, uuid)"),
        ([{"select": {"uuid": 580}}], 'gpus[0].select.uuid is an integer (580), and takes a string, in quotes: "580"'),
        (
            [{"select": {"uuid": 1.30}}],
            "takes a string, in quotes (without, 1.30 is 1.3)",
        ),
        ([{"select": {"uuid": True}}], "gpus[0].select.uuid is true or false (True), and takes a string: correct"),
        ([{"select": None}], "gpus[0].select is null, and takes a mapping"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(gpus: Any, fault: str) -> None:
    with pytest.raises(Refused) as refused:
        strict("gpu-settings", FIELDS, {"gpus": gpus})
    assert fault in refused.value.message


def test_options_become_settings_at_any_depth_and_those_not_given_are_left_out() -> None:
    """Ansible fills suboptions that were not given with null."""
    params = {
        "state": "present",
        "power_limit_watts": None,
        "gpus": [{"select": {"uuid": None, "index": 0}, "power_limit_watts": 400}],
    }
    assert wire_settings(UNIT, params) == {"gpus": [{"select": {"index": 0}, "powerLimitWatts": 400}]}


def test_what_is_no_suboption_stays_to_be_refused() -> None:
    """Options may come from a file or a signed spec, which no argument spec has read."""
    given: dict[str, Any] = {"gpus": [None, 7, {"select": "x", "more": 1}, {"select": {"of": 1, "index": None}}]}
    assert wire_settings(UNIT, given) == {"gpus": [None, 7, {"select": "x", "more": 1}, {"select": {"of": 1}}]}


PLAIN = st.none() | st.booleans() | st.integers(0, 9) | st.floats(0, 1) | st.sampled_from(["", "0", "GPU-1"])
NAMES = st.sampled_from(["powerLimitWatts", "gpus", "select", "uuid", "index", "slot"])
GIVEN = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@given(st.dictionaries(NAMES, GIVEN, max_size=3))
@example({"gpus": [{"select": {"index": 0}}, {"select": {"index": True}}]})
@example({"gpus": [{"select": {"index": 0}}, [{}]]})
def test_what_fits_and_what_has_no_fault_are_the_same(settings: dict[str, Any]) -> None:
    """Whether settings fit is seen without the sentences that say what is wrong with them: two walks, one table."""
    wrong = [*faults(FIELDS, settings, "", "setting of this unit")]
    try:
        said = str(strict("gpu-settings", FIELDS, settings))
    except Refused as fault:
        said = fault.message
    assert said == (f"gpu-settings: {'; '.join(wrong)}: correct the settings" if wrong else str(settings))
