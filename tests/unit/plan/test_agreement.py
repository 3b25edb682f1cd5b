# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said beside a signed spec: the same, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.agreement import (
    differences,
    of_devices,
    of_generation,
    of_section,
    of_unit,
)

UNITS: dict[str, dict[str, Any]] = {"sysctl": {"vm.swappiness": 10, "net.ipv4.ip_forward": 1}, "fabric-manager": {}}
ADVICE = ": leave the options out, or have the spec signed with them"


def refused(read: Any, *given: Any) -> str:
    with pytest.raises(Refused) as raised:
        read(*given)
    return raised.value.message


# -- one unit


def test_a_unit_takes_what_is_signed() -> None:
    assert of_unit(UNITS, "sysctl", {}) == UNITS["sysctl"]
    assert of_unit(UNITS, "sysctl", {"net.ipv4.ip_forward": 1, "vm.swappiness": 10}) == UNITS["sysctl"]
    assert of_unit(UNITS, "fabric-manager", {}) == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"vm.swappiness": 11, "net.ipv4.ip_forward": 1},
            "vm.swappiness is 11 in the options and 10 in the signed spec",
        ),
        ({"vm.swappiness": "10", "net.ipv4.ip_forward": 1}, "vm.swappiness is '10' in the options and 10 in the"),
        ({"vm.swappiness": 10, "net.ipv4.ip_forward": True}, "net.ipv4.ip_forward is True in the options and 1 in the"),
        ({"vm.swappiness": 10}, "net.ipv4.ip_forward is not in the options and 1 in the signed spec"),
        ({**UNITS["sysctl"], "a.b": 1}, "a.b is 1 in the options and not in the signed spec"),
        ({**UNITS["sysctl"], "a.b": None}, "a.b is None in the options and not in the signed spec"),
    ],
)
def test_edited_settings(given: dict[str, Any], said: str) -> None:
    message = refused(of_unit, UNITS, "sysctl", given)
    assert message.startswith(f"sysctl: {said}")
    assert message.endswith(ADVICE)


def test_an_unnamed_unit_is_only_cleaned_and_a_named_one_never() -> None:
    assert of_unit(UNITS, "cpu", None) is None
    assert refused(of_unit, UNITS, "sysctl", None) == (
        "sysctl is to be removed, and the signed spec names it: leave state out, or sign it without sysctl"
    )
    told = "the signed spec does not name cpu: have a spec signed that does, or give state: absent"
    assert refused(of_unit, UNITS, "cpu", {}) == refused(of_unit, UNITS, "cpu", {"governor": "performance"}) == told


@pytest.mark.parametrize("given", [None, {}, {"a.b": 1}])
def test_a_spec_without_a_host_section_manages_no_unit(given: Any) -> None:
    assert refused(of_unit, None, "sysctl", given) == (
        "the signed spec has no host section, and manages no unit: have a spec signed that has one"
    )
    assert "manages no unit" in refused(of_section, None, given)


@pytest.mark.parametrize("value", [1.5, float("nan"), "\ud800", {1: 2}, b"x"])
def test_what_nothing_signed_can_be(value: Any) -> None:
    assert "and nothing signed can be that: correct the options" in refused(of_unit, UNITS, "sysctl", {"a.b": value})


# -- the whole host


def test_a_section_takes_what_is_signed() -> None:
    assert of_section(UNITS, None) == UNITS
    assert of_section(UNITS, dict(reversed(UNITS.items()))) == UNITS
    assert of_section({}, {}) == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "and the options do not name fabric-manager, sysctl"),
        ({"sysctl": UNITS["sysctl"]}, "and the options do not name fabric-manager"),
        ({**UNITS, "cpu": {}}, "and the options name cpu too"),
    ],
)
def test_a_section_of_other_units(given: Any, said: str) -> None:
    assert refused(of_section, UNITS, given) == f"the signed spec has fabric-manager, sysctl, {said}{ADVICE}"


def test_a_section_beside_an_empty_one() -> None:
    assert refused(of_section, {}, {"cpu": {}}) == f"the signed spec has no unit, and the options name cpu too{ADVICE}"


def test_a_section_with_edited_settings() -> None:
    given = {**UNITS, "fabric-manager": {"a": 1}}
    assert refused(of_section, UNITS, given) == (
        f"fabric-manager: a is 1 in the options and not in the signed spec{ADVICE}"
    )
    assert refused(of_section, UNITS, {**UNITS, "sysctl": Refused("sysctl: no settings")}) == "sysctl: no settings"
    for value, said in (
        (True, "net.ipv4.ip_forward is True in"),
        ("1", "is '1' in the options"),
        (1.0, "no float: 1.0"),
    ):
        given = {**UNITS, "sysctl": {**UNITS["sysctl"], "net.ipv4.ip_forward": value}}
        assert said in refused(of_section, UNITS, given)


# -- devices and the generation


ONE = {"allocation_id": "a", "binding": "cdi", "devices": ["gpu-0"]}


def test_devices() -> None:
    assert of_devices([ONE], None) == [ONE]
    assert of_devices([ONE], [{**ONE, "env": None, "limits": None}]) == [ONE]  # as Ansible fills what is not given
    assert of_devices([], []) == []


@pytest.mark.parametrize("given", [[], [ONE, ONE], [{**ONE, "env": ["A=1"]}], [{**ONE, "devices": ["gpu-1"]}]])
def test_other_devices(given: Any) -> None:
    assert refused(of_devices, [ONE], given) == f"assignments differ from the devices of the signed spec{ADVICE}"


def test_the_order_of_assignments_is_part_of_what_is_signed() -> None:
    two = {**ONE, "allocation_id": "b"}
    assert "assignments differ" in refused(of_devices, [ONE, two], [two, ONE])


@pytest.mark.parametrize("given", [None, [], [ONE]])
def test_a_spec_without_devices_manages_no_hold(given: Any) -> None:
    assert refused(of_devices, None, given) == (
        "the signed spec has no devices, and manages no hold: have a spec signed that has them"
    )


def test_the_generation() -> None:
    assert of_generation(7, None) == of_generation(7, 7) == 7
    for other in (6, 8, 0):
        assert refused(of_generation, 7, other) == (
            f"generation is {other} in the options and 7 in the signed spec{ADVICE}"
        )


def test_a_difference_is_cut() -> None:
    assert len(differences({"a.b": "x" * 10_000}, {"a.b": "y" * 10_000})) < 500
