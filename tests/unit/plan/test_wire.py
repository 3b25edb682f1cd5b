# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section as it travels: settings as text are read strictly."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import wire


def listed(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"unit": unit, "settings": settings} for unit, settings in pairs]


def refusal(settings: Any) -> str:
    assert isinstance(settings, Refused)
    return settings.message


def test_a_list_is_the_mapping_that_it_spells() -> None:
    text = '{"pages2m": 4, "perNuma": true, "transparent": "never"}'
    assert wire.from_list(listed(("hugepages", text), ("sysctl", '{"a.b": [1.5, null]}'))) == {
        "hugepages": {"pages2m": 4, "perNuma": True, "transparent": "never"},
        "sysctl": {"a.b": [1.5, None]},
    }


def test_a_unit_named_twice_is_refused_for_the_whole_section() -> None:
    with pytest.raises(Refused, match="names cpu, sysctl twice"):
        wire.from_list(listed(("sysctl", "{}"), ("cpu", "{}"), ("sysctl", "{}"), ("iommu", "{}"), ("cpu", "{")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "b": 2, "a": 1}', "a is there twice"),
        ('{"a": {"c": 1, "c": 2}}', "c is there twice"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": -Infinity}', "-Infinity is no number"),
        ("{} {}", "Extra data"),
        ('{"a": 1}x', "Extra data"),
        ('{"a": 1,}', ""),
        ("", ""),
        ("{'a': 1}", ""),
        ('{"a": "\\ud800"}', ""),
        ('{"\\udc80": 1}', ""),
        ("[" * 100000, ""),
        ("[]", r"\[\]: give a mapping"),
        ("null", "null: give a mapping"),
        ('"{}"', "give a mapping"),
    ],
)
def test_text_that_is_not_one_object_is_its_unit_s_refusal_and_no_other_s(text: str, why: str) -> None:
    found = wire.from_list(listed(("cpu", text), ("iommu", "{}")))
    assert refusal(found["cpu"]).startswith("cpu: its settings are ")
    if why:
        with pytest.raises(Refused, match=why):
            raise found["cpu"]  # type: ignore[misc]
    assert found["iommu"] == {}


@pytest.mark.parametrize("parsed", [{"a": 1}, ["{}"], None, 3])
def test_settings_that_were_parsed_on_the_way_are_refused(parsed: Any) -> None:
    assert "not as text" in refusal(wire.from_list(listed(("cpu", parsed)))["cpu"])


def test_a_mapping_refuses_settings_that_are_none() -> None:
    found = wire.from_mapping({"sysctl": {"a.b": 1}, "cpu": None, "iommu": [1]})
    assert found["sysctl"] == {"a.b": 1}
    assert refusal(found["cpu"]) == "cpu: its settings are null: give a mapping, {} for none"
    assert refusal(found["iommu"]) == "iommu: its settings are [1]: give a mapping, {} for none"
