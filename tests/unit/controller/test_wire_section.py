# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section as it travels: canonical bytes out, and read as strictly as a host does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.input_faults import InvalidInput
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.wire_section import from_section, to_section


def entry(unit: Any, settings: Any = "{}") -> dict[str, Any]:
    return {"unit": unit, "settings": settings}


def test_units_are_sorted_and_their_settings_canonical() -> None:
    units = {
        "sysctl": {"vm.b": "ü", "vm.a": 1},
        "cpu": {"isolate": "4-7"},
        "hugepages": {"perNuma": True, "pages1g": [1, 2]},
    }
    assert to_section(units) == [
        entry("cpu", '{"isolate":"4-7"}'),
        entry("hugepages", '{"pages1g":[1,2],"perNuma":true}'),
        entry("sysctl", '{"vm.a":1,"vm.b":"ü"}'),
    ]
    assert to_section({}) == []


@pytest.mark.parametrize(
    ("units", "paths"),
    [
        (None, ["$"]),
        ([], ["$"]),
        ({"cpu": None, "iommu": [], "sysctl": "x"}, ["$.cpu", "$.iommu", "$.sysctl"]),
        ({"sysctl": {"vm.a": 1.5}, "cpu": {}}, ["$.sysctl"]),
        ({"sysctl": {"vm.a": float("nan")}}, ["$.sysctl['vm.a']"]),
        ({"sysctl": {5: 1}}, ["$.sysctl"]),
        ({"sysctl": {"vm.a": "\ud800"}}, ["$.sysctl"]),
        ({"sysctl": {"vm.a": b"x"}}, ["$.sysctl['vm.a']"]),
    ],
)
def test_what_has_no_canonical_form_is_refused(units: Any, paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as raised:
        to_section(units)
    assert [fault.path for fault in raised.value.faults] == paths


@pytest.mark.parametrize(
    ("section", "paths"),
    [
        (None, ["$"]),
        ({}, ["$"]),
        ([5, None], ["$[0]", "$[1]"]),
        ([{"unit": "cpu"}], ["$[0]"]),
        ([{"settings": "{}"}], ["$[0]"]),
        ([entry(5)], ["$[0].unit"]),
        ([entry("cpu", {})], ["$[0].settings"]),
        ([{**entry("cpu"), "when": ""}], ["$[0].when"]),
        ([entry("cpu"), entry("iommu"), entry("cpu")], ["$[0].unit", "$[2].unit"]),
        ([entry("cpu", '{"isolate":"1","isolate":"2"}')], ["$[0].settings"]),
        ([entry("cpu", '{"a":{"b":1,"b":1}}')], ["$[0].settings"]),
        ([entry("cpu", "{} {}")], ["$[0].settings"]),
        ([entry("cpu", "{}x")], ["$[0].settings"]),
        ([entry("cpu", "[]")], ["$[0].settings"]),
        ([entry("cpu", "null")], ["$[0].settings"]),
        ([entry("cpu", "")], ["$[0].settings"]),
        ([entry("cpu", '{"a":NaN}')], ["$[0].settings"]),
        ([entry("cpu", "[" * 100000)], ["$[0].settings"]),
        ([entry("cpu", "{} "), entry("iommu", "{"), 5], ["$[1].settings", "$[2]"]),
    ],
)
def test_what_a_host_would_not_decode_is_refused_all_at_once(section: Any, paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as raised:
        from_section(section)
    assert [fault.path for fault in raised.value.faults] == paths


def test_a_section_is_read_in_whatever_order_it_comes() -> None:
    section = [entry("sysctl", '{ "vm.swappiness" : 10 }'), entry("cpu")]
    assert list(from_section(section).items()) == [("cpu", {}), ("sysctl", {"vm.swappiness": 10})]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inside, max_size=3)
    ),
    max_leaves=8,
)
UNITS = st.dictionaries(
    st.sampled_from(["cpu", "sysctl", "mig-layout"]),
    st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES, max_size=3),
)


@given(UNITS)
def test_there_and_back_again(units: dict[str, Any]) -> None:
    section = to_section(units)
    assert from_section(section) == units
    assert to_section(from_section(section)) == section
    assert to_section(dict(reversed(units.items()))) == section
